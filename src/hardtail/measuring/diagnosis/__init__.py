"""Explaining a decode from its trace alone: no model, no torch.

`diagnose` gives everything as JSON holds it, `tables` the same for people. The parts can be used by themselves:
`readiness`, `coverage`, and each task's own `profile`.
"""

from hardtail.measuring.diagnosis.front import diagnose, tables

__all__ = ["diagnose", "tables"]
