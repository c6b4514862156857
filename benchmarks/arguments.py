"""What the benchmarks' parsers share."""

from argparse import ArgumentTypeError


def how_many(text: str) -> int:
    """A parser's `type`: a whole number of at least 1."""
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"it is {text!r}; it must be a whole number of at least 1")
    return int(text)
