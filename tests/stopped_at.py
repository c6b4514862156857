"""`python -m tests.stopped_at STEP WORDS`: the command line, asked to stop by SIGTERM once a step has been taken.

0 stops after the initial weights were measured, which the first process alone does.
"""

import signal
import sys

from hardtail import cli
from hardtail.core.records import LogLine
from hardtail.training.keeper import Keeper
from hardtail.training.step import Step

if __name__ == "__main__":
    last, sys.argv[1:] = int(sys.argv[1]), sys.argv[2:]
    real, noting = Step.__call__, Keeper.note

    def step(self: Step) -> None:
        real(self)
        if int(self.step) == last:
            signal.raise_signal(signal.SIGTERM)

    def note(self: Keeper, line: LogLine, step: Step) -> LogLine:
        noted = noting(self, line, step)
        if last == line.step == 0 and line.probe_nll is not None:
            signal.raise_signal(signal.SIGTERM)
        return noted

    Step.__call__ = step  # type: ignore[method-assign]
    Keeper.note = note  # type: ignore[method-assign]
    cli.main()
