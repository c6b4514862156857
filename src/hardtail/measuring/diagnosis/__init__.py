"""Explaining a decode from its trace alone: no model, no torch.

`diagnose` gives everything as JSON holds it, `tables` the same for people. The parts can be used by themselves:
`readiness`, `coverage`, and each task's own profile in the module of its name.
"""

from hardtail.measuring.diagnosis.front import PROFILES, diagnose, tables

__all__ = ["PROFILES", "diagnose", "tables"]
