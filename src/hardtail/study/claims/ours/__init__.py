"""What this project itself claims, written down before it is measured: how far checking an answer repairs it."""

from hardtail.study.claims.source import Paper

SOURCE = Paper(__name__, tables=(), statements=("remedy",), title="this project")
