"""Sudoku: everything about the task, from its generator and solvers to how a page draws it."""
