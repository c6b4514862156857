"""Where a grid runs: the options of `--launcher`, and the table of all runs while they are worked on elsewhere."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

from hardtail.cli.options import option
from hardtail.core.errors import HardtailError
from hardtail.core.fields import Bounds
from hardtail.core.terminal import console

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from hardtail.measuring.passes import Passes
    from hardtail.measuring.subject import Subject
    from hardtail.study.cluster import Crew
    from hardtail.study.shards import Load
    from hardtail.study.unit import Launcher, Seen

LauncherName = Annotated[
    Literal["inline", "ray"], option("where the work is done: in this process, or on a Ray cluster (docs/scale.md)")
]
Address = Annotated[
    str | None, option("of a running Ray cluster, or auto [a cluster on this machine, for this command]", "HOST:PORT")
]
CpusPerRun = Annotated[int, option("with --launcher ray: cores of each run", "N"), Bounds(ge=1)]
GpusPerRun = Annotated[
    float | None,
    option("with --launcher ray: GPUs of each run, or a share of one such as 0.25 [1 if the cluster has any]", "N"),
    Bounds(ge=0, lt=1000),
]


@contextmanager
def crew(launcher: LauncherName, address: str | None) -> "Iterator[Crew | None]":
    """The workers that a user wants parts of the work to be sent to; None if all of it is done here."""
    if launcher == "inline":
        if address is not None:
            raise HardtailError("--address applies to --launcher ray; add that")
        yield None
        return
    from hardtail.study.cluster import Crew, connected

    with connected(address) as ray:
        yield Crew(ray)


@contextmanager
def passes(
    launcher: LauncherName, address: str | None, device: str | None, subject: "Subject", load: "Load"
) -> "Iterator[tuple[Passes, str]]":
    """Who makes the forward passes of an evaluation, and on which device; `load` loads the model there."""
    from hardtail.measuring.passes import HERE

    with crew(launcher, address) as workers:
        if workers is None:
            yield HERE, subject.device
            return
        from hardtail.study.shards import Identity, Shards

        where = device or ("cuda" if workers.has_gpus else "cpu")
        yield Shards(workers.on(where), load, Identity.of(subject)), where


class Grid:
    """How a user wants a grid to be worked on."""

    def __init__(self, name: str, address: str | None, cpus: int, gpus: float | None) -> None:
        self.name, self.address, self.cpus, self.gpus = name, address, cpus, gpus
        self.began = False
        """Whether work has begun elsewhere, so that there is something to save."""
        self.rows: list[Seen] = []
        self.screen = console(stderr=True)
        given = {"--address": address is not None, "--cpus-per-run": cpus != 1, "--gpus-per-run": gpus is not None}
        if self.here and any(given.values()):
            raise HardtailError(f"{next(flag for flag in given if given[flag])} applies to --launcher ray; add that")

    @property
    def here(self) -> bool:
        return self.name == "inline"

    def say(self, words: str) -> None:
        print(words, flush=True)

    @contextmanager
    def launcher(self) -> "Iterator[Launcher]":
        """What decides where runs are worked on; while it is open, the table is shown."""
        from hardtail.study.unit import Inline

        if self.here:
            yield Inline()
            return
        from hardtail.study.on_ray import Ray

        launcher = Ray(self.address, self.cpus, self.gpus, self._watch)
        if not self.screen.is_terminal:
            yield launcher
            return
        from rich.live import Live

        with Live(console=self.screen, get_renderable=self._table, refresh_per_second=2, transient=True):
            yield launcher

    def _watch(self, rows: "list[Seen]") -> None:
        before = self._summary()
        self.began, self.rows = True, rows
        if not self.screen.is_terminal and (now := self._summary()) != before:
            print(now, file=sys.stderr, flush=True)

    def _summary(self) -> str:
        counts = Counter(row.state for row in self.rows)
        return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "starting"

    def _table(self) -> "RichTable":
        from rich.table import Table

        table = Table(title=self._summary(), title_justify="left", box=None, padding=(0, 2, 0, 0))
        for column in ("run", "state", "step", "where"):
            table.add_column(column, justify="right" if column == "step" else "left", no_wrap=True)
        room = max(self.screen.height - 4, 5)
        first = [row for row in self.rows if row.where] + [row for row in self.rows if not row.where]
        for row in first[:room]:
            table.add_row(row.name, row.state, f"{row.step:,}/{row.steps:,}", row.where)
        if len(first) > room:
            table.add_row(f"and {len(first) - room} more", "", "", "")
        return table
