"""The one place that knows numba.

Modules with compiled functions import everywhere; where numba is absent their functions fail when *called*, with a
sentence that says what to do. So saved data, vocabularies and checks work on a machine that only trains.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from hardtail.errors import HardtailError

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile `function`, cached on disk; it releases the interpreter lock, so threads use all cores."""
    try:
        from numba import njit
    except ImportError:

        @wraps(function)
        def missing(*args: object, **kwargs: object) -> object:
            raise HardtailError(
                f"{function.__module__}.{function.__name__} needs numba, which is not installed here: "
                "`pip install numba`, or build the data elsewhere with `hardtail data` and load the file"
            )

        return cast(F, missing)
    return cast(F, njit(cache=True, nogil=True)(function))
