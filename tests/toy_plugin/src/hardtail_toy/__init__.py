"""A package that adds to hardtail without touching it."""
