"""Explaining a decode from its trace alone: no model, no torch.

`diagnose` gives everything as one record (`Diagnosis`), `verdict` says it in five lines, `tables` shows all of it. The
parts can be used by themselves: `readiness`, `coverage`, and each task's own `profile`.
"""

from hardtail.measuring.diagnosis.front import diagnose, tables
from hardtail.measuring.diagnosis.record import Diagnosis, read_diagnoses
from hardtail.measuring.diagnosis.verdict import DiagnosisVerdict, verdict

__all__ = ["Diagnosis", "DiagnosisVerdict", "diagnose", "read_diagnoses", "tables", "verdict"]
