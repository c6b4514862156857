"""What a person sees of long work: a bar on a terminal, plain lines elsewhere, log lines in both."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING

from hardtail.cli.common import new_bar, open_console
from hardtail.cli.progress import plain_lines
from hardtail.core.tables import SCREEN
from hardtail.show.words import duration

if TYPE_CHECKING:
    from rich.progress import TaskID

    from hardtail.core.records import LogLine

_NAMES = {
    "loss": "loss",
    "norm": "norm",
    "probe_nll": "probe",
    "probe_guessed": "guessed",
    "natural": "natural",
    "hard": "hard",
    "hard_logical": "hard in order",
}
"""The measurements of a log line, and what they are called on a screen."""
REDRAW_EVERY = 0.2
"""Seconds between two drawings of the bar; there may be thousands of steps in a second."""


class Watcher:
    """Shows one piece of work after another, such as the training of a run and then its measuring."""

    def __init__(self) -> None:
        from rich.progress import TextColumn

        self.bar = new_bar(TextColumn("{task.fields[words]}", markup=False))
        self.width = open_console().width if self.bar.disable else self.bar.console.width
        self.began = False
        """Whether there is something to save."""
        self._at: tuple[str, str] = "", ""
        self._task: TaskID | None = None
        self._done, self._total, self._drawn = 0, 0, monotonic()

    @contextmanager
    def shown(self) -> Iterator[None]:
        with self.bar, plain_lines(self.now) if self.bar.disable else nullcontext():
            yield

    def begin(self, name: str, what: str, total: int) -> None:
        """From now on, show `what` is done with `name`."""
        self._at, self._done, self._total = (name, what), 0, total
        if not self.bar.disable:
            if self._task is not None:
                self.bar.remove_task(self._task)
            self._task = self.bar.add_task(" ".join(filter(None, (name, what))), total=total, words="")

    def move(self, name: str, what: str, done: int, total: int) -> None:
        """Show how far `what` has come."""
        if self._at != (name, what):
            self.begin(name, what, total)
        self._done = done
        if self._task is not None and (now := monotonic()) - self._drawn > REDRAW_EVERY:
            self._drawn = now
            self.bar.update(self._task, completed=done)

    def report(self, line: "LogLine", steps: int, name: str = "") -> None:
        """Show a line of a run's log; for the first line, how the steps are computed."""
        self.began = True
        self.move(name, "step", line.step, steps)
        at = [*filter(None, [name]), f"step {line.step:,}/{steps:,}"]
        if line.how is not None:
            watched = [f"measures itself on {line.watched.file}"] if line.watched else []
            self.say(filled([*at, line.how, *watched], self.width))
            return
        rate = line.step / line.wall if line.wall else 0.0
        measured = [f"{said} {value:.4g}" for key, said in _NAMES.items() if (value := getattr(line, key)) is not None]
        speed = [f"{rate:.1f} steps/s"] if rate and not name else []  # there is little room beside a name
        left = [f"{duration((steps - line.step) / rate)} left"] if rate and steps > line.step else []
        if self.bar.disable or line.probe_nll is not None:  # the bar shows the others
            self.say(filled([*at, *speed, *left, *measured], self.width))
        if self._task is not None:
            loss = "" if line.loss is None else f"loss {line.loss:.4g}"
            self.bar.update(self._task, completed=line.step, words="  ".join(filter(None, (*speed, loss))))

    def say(self, words: str) -> None:
        if self.bar.disable:
            print(words, flush=True)
        else:
            self.bar.console.print(words, highlight=False, markup=False)

    def now(self) -> str:
        name, what = self._at
        count = f"{self._done:,}/{self._total:,}" if self._total else ""
        return f"{name}: " * bool(name) + " ".join(filter(None, (what, count)))


def filled(pieces: Iterable[str], width: int = SCREEN) -> str:
    """The pieces in as few lines as fit; a piece is never broken, and lines after the first are indented."""
    lines: list[str] = []
    for piece in pieces:
        if lines and len(lines[-1]) + 2 + len(piece) <= width:
            lines[-1] += f"  {piece}"
        else:
            lines.append(f"  {piece}" if lines else piece)
    return "\n".join(lines)
