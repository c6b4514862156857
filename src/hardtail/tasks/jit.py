"""The one place that knows numba.

Modules with compiled functions can be imported everywhere; without numba their functions fail when *called*, with a
message that states what to do. So saved data, vocabularies and checks work on a machine that only trains.
"""

import hashlib
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from hardtail.core.errors import HardtailError

F = TypeVar("F", bound=Callable[..., Any])


class NoCompilerError(HardtailError):
    """A solver was called where numba is not installed."""


def jit(function: F) -> F:
    """Compile `function`, cached on disk; it releases the interpreter lock, so threads use all cores."""
    try:
        from numba import config, njit
    except ImportError:

        @wraps(function)
        def missing(*args: object, **kwargs: object) -> object:
            raise NoCompilerError(
                f"{function.__module__}.{function.__name__} needs numba, which is not installed here: "
                "`pip install numba`, or build the data elsewhere with `hardtail data` and load the file"
            )

        return cast(F, missing)
    before = config.CACHE_DIR
    config.CACHE_DIR = str(Path(before or Path(__file__).parent / "__pycache__") / f"jit-{_state_of_solvers()}")
    try:
        return cast(F, njit(cache=True, nogil=True)(function))
    finally:
        config.CACHE_DIR = before


@cache
def _state_of_solvers() -> str:
    """Names the cache after the state of all solvers.

    Left alone, numba compiles a function anew when its own file changes, but not when a function it calls does.
    """
    here = Path(__file__).parent
    digest = hashlib.sha256()
    shared = here / "jit.py", here / "rng.py", here.parent / "core" / "seeds.py"
    for path in sorted([*here.glob("*/solver.py"), *here.glob("*/solver/*.py"), *here.glob("*/solver/*.txt"), *shared]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
