"""What this project itself claims, written down before it is measured: how far checking an answer repairs it."""

from hardtail.study.claims.source import Source

SOURCE = Source(__name__, tables=(), statements=("remedy",))
