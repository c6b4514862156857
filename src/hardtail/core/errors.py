"""The one exception whose message is written for users."""


class HardtailError(ValueError):
    """A mistake that its reader can fix: what was given, what is accepted, what to do.

    The command line prints the sentence and exits with code 2; no stack trace.
    """


class BusyError(HardtailError):
    """Another process is writing there now."""
