"""Training: one step that never waits for the host, the loop around it, and exact resumption."""
