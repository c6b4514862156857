"""The one exception whose message is written for users, and how messages quote what was given."""

MOST_QUOTED = 80


class HardtailError(ValueError):
    """A mistake that its reader can fix: what was given, what is accepted, what to do.

    The command line prints the sentence and exits with code 2; no stack trace.
    """


class BusyError(HardtailError):
    """Another process is writing there now."""


def quoted(text: str) -> str:
    """Text from a file or a user as messages repeat it: in quotes, and its beginning only if it is long."""
    if len(text) <= MOST_QUOTED:
        return repr(text)
    return f"{text[:MOST_QUOTED]!r}… ({len(text):,} characters)"
