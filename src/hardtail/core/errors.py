"""The one exception whose message is written for users, and how messages quote what was given."""

from collections.abc import Iterator
from contextlib import contextmanager

MOST_QUOTED = 80
LONGEST = 4000
"""Characters of a message; one that repeats something huge, or what a library says about it, loses its middle."""


class HardtailError(ValueError):
    """A mistake that its reader can fix: what was given, what is accepted, what to do.

    The command line prints the sentence and exits with code 2; no stack trace.
    """

    def __init__(self, message: str) -> None:
        half = LONGEST // 2
        super().__init__(message if len(message) <= LONGEST else f"{message[:half]} … {message[-half:]}")


class FieldError(HardtailError):
    """A field of a configuration has a value that is not accepted."""

    def __init__(self, owner: str, field: str, problem: str) -> None:
        super().__init__(f"{owner}: {field} {problem}")
        self.owner, self.field, self.problem = owner, field, problem


class BusyError(HardtailError):
    """Another process is writing there now."""


@contextmanager
def on_files() -> Iterator[None]:
    """Tell a user what the file system refused as a HardtailError. It is a decorator, too."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        raise HardtailError(refused(error)) from error


def refused(error: OSError) -> str:
    """What the file system refused, and what to do."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{error.filename or 'a path'} is not a folder, or is inside a file; give another name"
    return f"{error.filename or 'the file system'}: {error.strerror or error}; fix that, or give another name"


def quoted(text: str) -> str:
    """Text from a file or a user as messages repeat it: in quotes, and its beginning only if it is long."""
    if len(text) <= MOST_QUOTED:
        return repr(text)
    return f"{text[:MOST_QUOTED]!r}… ({len(text):,} characters)"
