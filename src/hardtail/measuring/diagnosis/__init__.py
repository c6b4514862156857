"""Explaining a decode from its trace alone: no model, no torch.

`diagnose` gives everything as one record (`Diagnosis`), `tables` the same for people. The parts can be used by
themselves: `readiness`, `coverage`, and each task's own `profile`.
"""

from hardtail.measuring.diagnosis.front import diagnose, tables
from hardtail.measuring.diagnosis.record import Diagnosis, read_diagnoses

__all__ = ["Diagnosis", "diagnose", "read_diagnoses", "tables"]
