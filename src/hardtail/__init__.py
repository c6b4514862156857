"""hardtail: masked diffusion models on reasoning tasks whose logical order is known exactly.

    import hardtail as ht

    model = ht.load("zoo:addition-papl-paper")
    print(ht.evaluate(model, policies=["top1", "lsb"], strata=["natural", "chain>=28"], n=100))
    trace = ht.decode(model, ht.task("addition").sample(50, "chain>=28", seed=0), "top1")
    print(ht.diagnose(trace))
    ht.report(trace, "mine.html")

These names are imported when they are first used, so that `import hardtail` stays fast and free of torch and numpy.
Almost nothing is imported here: `__main__` can end quietly at Ctrl-C only once this file has been read.
"""

from importlib import import_module

from hardtail.core.asleep import wait_asleep
from hardtail.core.errors import HardtailError
from hardtail.core.version import __version__

TYPE_CHECKING = False  # type checkers take it for true; `typing` takes as long to import as all of this
if TYPE_CHECKING:
    from hardtail.api.hub import push
    from hardtail.api.models import decode, evaluate, load
    from hardtail.api.traces import diagnose, load_canvases, load_trace, report
    from hardtail.core.files import load_instances, save_instances
    from hardtail.core.registry import TASKS
    from hardtail.core.seeds import Stream, Streams
    from hardtail.core.types import Instances, Trace
    from hardtail.tasks.base import Task

__all__ = [
    "TASKS",
    "HardtailError",
    "Instances",
    "Stream",
    "Streams",
    "Trace",
    "__version__",
    "decode",
    "diagnose",
    "evaluate",
    "load",
    "load_canvases",
    "load_instances",
    "load_trace",
    "push",
    "report",
    "save_instances",
    "task",
]

_LAZY = {
    **dict.fromkeys(("decode", "evaluate", "load"), "hardtail.api.models"),
    "push": "hardtail.api.hub",
    **dict.fromkeys(("diagnose", "load_canvases", "load_trace", "report"), "hardtail.api.traces"),
    **dict.fromkeys(("load_instances", "save_instances"), "hardtail.core.files"),
    "TASKS": "hardtail.core.registry",
    **dict.fromkeys(("Stream", "Streams"), "hardtail.core.seeds"),
    **dict.fromkeys(("Instances", "Trace"), "hardtail.core.types"),
}

wait_asleep()


def task(name: str, preset: str | None = None, **fields: object) -> "Task":
    """The task `name` in one of its readings: `task("addition", digits=8).sample(3, "chain>=4", seed=0)`.

    Fields can also follow the name, as in every command: `task("addition,digits=8")`.
    """
    from hardtail.tasks.named import make_task

    return make_task(name, preset, **fields)


if not TYPE_CHECKING:  # a type checker knows the names above, and so notices a wrong one

    def __getattr__(name: str) -> object:
        if name not in _LAZY:
            raise AttributeError(f"module 'hardtail' has no attribute {name!r}")
        return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
