"""A user's own decodes next to each other: accuracy with intervals, paired tests, one figure with shared axes.

Shapes: N traced instances.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic
from hardtail.core.tables import Table, share_text
from hardtail.core.types import Trace
from hardtail.measuring.statistics import Interval, PairedTest, mcnemar, wilson
from hardtail.show.figures import style
from hardtail.show.stages import Stage, stages, title_of
from hardtail.show.table_files import latex
from hardtail.show.words import stratum_words
from hardtail.tasks.base import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALONE = "there is nothing to compare; give at least two models, policies or traces of one task"
WIDTH, HEIGHT = 3.4, 2.6
"""Inches of one panel, without its legend."""
LINE, MOST_LETTERS = 0.15, 48
"""The height of a line of the legend in inches, and how many letters of a name fit into one."""


@dataclass(frozen=True)
class DecoderScore:
    """One decoder on one stratum."""

    decoder: str
    stratum: str
    right: int
    n: int
    against_first: PairedTest | None
    """Compared with the first decoder on the problems that both decoded; None for the first itself, and where they have
    no problem in common."""
    common: int

    @property
    def interval(self) -> Interval:
        return wilson(self.right, self.n)


@dataclass(frozen=True)
class Compared:
    """The decoders of one task."""

    title: str
    decoders: tuple[str, ...]
    strata: tuple[str, ...]
    scores: tuple[DecoderScore, ...]

    @property
    def alike(self) -> bool:
        """Whether all decoders of a stratum had the same problems: a trace may be of others, or of more."""
        counts = {(score.stratum, count) for score in self.scores for count in (score.n, score.common)}
        return len(counts) == len(self.strata)


def compared(traces: Sequence[Trace]) -> list[Compared]:
    """Compare traces task by task; at least two decoders of one task are needed."""
    found_stages = stages(traces)
    found = [_compared(stage, title_of(stage, found_stages)) for stage in found_stages]
    if all(len(one.decoders) < 2 for one in found):
        if len(traces) > len(found):
            raise HardtailError(f"{ALONE}; traces of one model and policy are one decoder of all their problems")
        raise HardtailError(ALONE)
    return found


def refuse_alone(traces: Sequence[Trace], planned: Sequence[Task]) -> None:
    """Raise HardtailError unless two decoders are of one task; `planned` has the tasks of those still to be decoded."""
    held = [stage.task for stage in stages(traces) for _ in stage.decoders]
    if max(Counter([*held, *planned]).values(), default=0) < 2:
        raise HardtailError(ALONE)


def _compared(stage: Stage, title: str) -> Compared:
    strata = tuple(dict.fromkeys(stage.stratum_P.tolist()))
    names = tuple(decoder.name for decoder in stage.decoders)
    return Compared(title, names, strata, tuple(_scores(stage, strata)))


def _scores(stage: Stage, strata: Sequence[str]) -> Iterator[DecoderScore]:
    """Every decoder on every stratum that it was decoded on."""
    first, first_row_N = stage.decoders[0], stage.rows[0]
    for stratum in strata:
        for place, (decoder, row_N) in enumerate(zip(stage.decoders, stage.rows, strict=True)):
            inside_N = decoder.stratum_N == stratum
            if not inside_N.any():
                continue
            right_N = decoder.trace.exact_N
            _, ours, theirs = np.intersect1d(_numbered(row_N[inside_N]), _numbered(first_row_N), return_indices=True)
            paired = mcnemar(first.trace.exact_N[theirs], right_N[inside_N][ours]) if place and len(ours) else None
            n, right = int(inside_N.sum()), int(right_N[inside_N].sum())
            yield DecoderScore(decoder.name, stratum, right, n, paired, len(ours))


def _numbered(row_N: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each problem and each time it was drawn: a stratum may have the same one twice."""
    order_N = np.argsort(row_N, kind="stable")
    sorted_N = row_N[order_N]
    time_N = np.empty_like(row_N)
    time_N[order_N] = np.arange(len(row_N)) - np.searchsorted(sorted_N, sorted_N)
    return row_N * (1 << 32) + time_N


# -- for people -------------------------------------------------------------------------------------------------------


def compare_tables(found: Sequence[Compared]) -> list[Table]:
    """Accuracies with intervals, then the paired tests against the first decoder."""
    return [table for one in found for table in (_accuracies(one), _tests(one)) if table.rows]


def _accuracies(one: Compared) -> Table:
    rows = []
    for score in one.scores:
        share = share_text(score.right / score.n, *score.interval)
        rows.append((score.decoder, score.stratum, f"{score.right} of {score.n}", share))
    title = f"{one.title}: exact match (95 % interval){'' if one.alike else ', of problems that are not all the same'}"
    return Table(title, ("decoder", "stratum", "right", "share"), tuple(rows))


def _tests(one: Compared) -> Table:
    rows = tuple(
        (score.decoder, score.stratum, score.common, paired.only_first, paired.only_second, paired.p)
        for score in one.scores
        if (paired := score.against_first)
    )
    columns = ("decoder", "stratum", "problems", "only first", "only this", "p (McNemar)")
    return Table(f"{one.title}: against {one.decoders[0]}, on the same problems", columns, rows)


# -- for a paper ------------------------------------------------------------------------------------------------------


def write_latex(path: Path, found: Sequence[Compared]) -> None:
    """Write all tables to one file; needs booktabs, and longtable if there are many rows."""
    with atomic(path) as file:
        file.write("\n".join(map(latex, compare_tables(found))).encode())


def refuse_format(path: Path) -> None:
    if path.suffix not in style.UNDATED:
        raise HardtailError(f"--out {path}: a figure must end in {', '.join(style.UNDATED)}")


def write_figure(path: Path, found: Sequence[Compared]) -> None:
    """Write one panel for each task, with the same scale of accuracy."""
    refuse_format(path)
    style.write(compare_figure(found), path)


@style.style()
def compare_figure(found: Sequence[Compared]) -> "Figure":
    labels = {name: fill(name, MOST_LETTERS) for one in found for name in one.decoders}
    lines = max(sum(label.count("\n") + 1 for label in map(labels.get, one.decoders) if label) for one in found)
    figure = style.sheet(WIDTH * len(found), HEIGHT + LINE * lines)
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for axes, one in zip(panels, found, strict=True):
        colour = style.apart(len(one.decoders))
        for place, decoder in enumerate(one.decoders):
            # Side by side, so that intervals stay visible.
            shift = min(0.12, 0.7 / len(one.decoders)) * (place - (len(one.decoders) - 1) / 2)
            scores = [score for score in one.scores if score.decoder == decoder]
            x = [one.strata.index(score.stratum) + shift for score in scores]
            y = [score.right / score.n for score in scores]
            ends = [[value - score.interval.low for value, score in zip(y, scores, strict=True)]]
            ends += [[score.interval.high - value for value, score in zip(y, scores, strict=True)]]
            look = {"color": colour[place], "marker": style.MARKERS[place % len(style.MARKERS)], "linestyle": "none"}
            axes.errorbar(x, y, yerr=np.maximum(ends, 0), markersize=4, capsize=2, label=labels[decoder], **look)
        axes.set_xticks(range(len(one.strata)), map(stratum_words, one.strata))
        axes.set_xlim(-0.5, len(one.strata) - 0.5)
        axes.set_title(one.title)
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.1))
    panels[0].set_ylim(-0.03, 1.03)
    panels[0].set_ylabel("exact match")
    return figure
