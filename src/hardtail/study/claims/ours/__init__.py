"""What this project itself claims, most of it written down before it was measured at size: how far checking answers
helps, and what a little random masking does for PUMA."""

from hardtail.study.claims.source import Paper

SOURCE = Paper(__name__, tables=(), statements=("remedy", "mixture"), title="this project")
