"""What a decode left behind, read without a model: which commits stand, which were wrong, what was hidden when.

Traces on disk are here too. Task profiles and generic diagnosis are both built on this room.
"""
