"""Charts of what was recorded and decoded, described once: the page draws them, and figures on paper draw them too."""
