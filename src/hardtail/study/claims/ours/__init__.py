"""What this project itself claims, written down before it is measured at size: how far checking answers helps."""

from hardtail.study.claims.source import Paper

SOURCE = Paper(__name__, tables=(), statements=("remedy",), title="this project")
