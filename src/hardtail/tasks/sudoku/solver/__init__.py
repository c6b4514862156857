"""Sudoku: exact search, the guess-count rating, generators, and the human techniques.

A board is `uint8[81]` in reading order: 0 is blank, 1 to 9 are digits.
"""
