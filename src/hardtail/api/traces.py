"""Traces: load, explain, and put on a page."""

import reprlib
from collections.abc import Iterable
from pathlib import Path

from hardtail.api.results import Explanation
from hardtail.core import trace_files
from hardtail.core.errors import HardtailError, on_files
from hardtail.core.pretrained import HF
from hardtail.core.types import Trace
from hardtail.measuring.explain import explain_traces
from hardtail.show.page.data import page_content
from hardtail.show.page.page import refuse_odd_name, write_page
from hardtail.study.store import Store, default_results
from hardtail.tasks.base import Task
from hardtail.tasks.named import task_given
from hardtail.tasks.recorded import read_canvases

Given = Trace | str | Path
"""A trace, or the .npz that it was saved as."""


@on_files()
def load_trace(path: str | Path) -> Trace:
    """A trace that `trace.save` or `hardtail eval --traces` wrote, or on the Hub (`hf:user/name`)."""
    return trace_files.load_trace(path)


@on_files()
def load_canvases(path: str | Path, task: Task | str) -> Trace:
    """The trace of a decode that another tool recorded, canvas by canvas (docs/models.md)."""
    return read_canvases(Path(path), task_given(task))


@on_files()
def diagnose(first: Given, *others: Given) -> Explanation:
    """What went wrong in a decode, in five lines; `.details` has all figures.

    Decodes of the same instances in other orders are named next to the first.
    """
    ((task, diagnoses), *rest) = explain_traces([_named(trace) for trace in (first, *others)])
    if rest:
        raise HardtailError("these traces are of different models, tasks or instances; diagnose each by itself")
    return Explanation(tuple(diagnoses), task.words)


@on_files()
def report(traces: Given | Iterable[Given], out: str | Path = "report.html", *, study: bool = False) -> Path:
    """Write one HTML page on which every decode can be stepped through; with `study`, also the recorded runs."""
    if not isinstance(out, str | Path):
        raise HardtailError(f"{reprlib.repr(out)} is not the name of a page; give the traces first, then a name")
    refuse_odd_name(Path(out))
    given = list(traces) if isinstance(traces, Iterable) and not isinstance(traces, str) else [traces]
    if not given and not study:
        raise HardtailError("there is nothing to show; give at least one trace, or study=True")
    content, arrays = page_content(
        Store(default_results()) if study else None, (), [_named(trace)[1] for trace in given]
    )
    write_page(Path(out), content, arrays)
    return Path(out)


def _named(trace: Given) -> tuple[str, Trace]:
    if isinstance(trace, Trace):
        return "the trace", trace
    if isinstance(trace, str | Path) and (str(trace).endswith(".npz") or str(trace).startswith(HF)):
        return str(trace), load_trace(trace)
    raise HardtailError(
        f"{reprlib.repr(trace)} is not a trace; give one, such as ht.decode(model, instances, 'top1'), or its .npz"
    )
