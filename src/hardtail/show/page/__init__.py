"""What was recorded and decoded, to look at: one self-contained page."""
