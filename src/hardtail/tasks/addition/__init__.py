"""Addition of long numbers: everything about the task, from its generator to how a page draws it."""
