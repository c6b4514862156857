"""Pure functions on arrays: they know the puzzles and nothing of tokens, strata names or models."""
