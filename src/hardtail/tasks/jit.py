"""The one place that knows numba.

Modules with compiled functions can be imported everywhere; without numba their functions fail when *called*, with a
message that states what to do. So saved data, vocabularies and checks work on a machine that only trains.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar, cast

from hardtail.core.errors import HardtailError

F = TypeVar("F", bound=Callable[..., Any])

BESIDE = Path(__file__).parent / "__pycache__"
"""Where compiled code is kept, unless the user says where or this cannot be written."""


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
    folder = kept_in(before)
    config.CACHE_DIR = str(folder or before)
    try:
        return cast(F, njit(cache=folder is not None, nogil=True)(function))
    finally:
        config.CACHE_DIR = before


def kept_in(given: str) -> Path | None:
    """The folder of compiled code, in the first place that can be written; without any, every process compiles anew.

    A package that was installed by somebody else cannot be written, and a home is missing in many containers. Left
    alone, numba ends there with an error when a solver is imported.
    """
    folders = (place / f"jit-{_state_of_solvers()}" for place in _places(given))
    return next(filter(_writable, folders), None)


def _places(given: str) -> Iterator[Path]:
    if given:
        yield Path(given)
    yield BESIDE
    own = Path(os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"))  # noqa: PTH111, PTH118
    if own.is_absolute():  # "~" stays as it is without a home
        yield own / "hardtail"


@cache
def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


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
