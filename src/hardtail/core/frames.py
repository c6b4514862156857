"""Data frames, for those who have pandas installed."""

from types import ModuleType

from hardtail.core.errors import HardtailError


def pandas_or_error() -> ModuleType:
    """Return pandas; raise HardtailError if it is not installed."""
    try:
        import pandas
    except ImportError:
        raise HardtailError("a data frame needs pandas: pip install 'hardtail[frames]'") from None
    return pandas
