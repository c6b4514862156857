"""`python -m tests.stopped_at STEP WORDS`: the command line, asked to stop by SIGTERM once a step has been taken."""

import signal
import sys

from hardtail import cli
from hardtail.training.step import Step

if __name__ == "__main__":
    last, sys.argv[1:] = int(sys.argv[1]), sys.argv[2:]
    real = Step.__call__

    def step(self: Step) -> None:
        real(self)
        if int(self.step) == last:
            signal.raise_signal(signal.SIGTERM)

    Step.__call__ = step  # type: ignore[method-assign]
    cli.main()
