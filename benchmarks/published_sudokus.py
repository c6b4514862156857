"""Train and measure Sudoku on published puzzles, as the study does: two files from a list of rated ones.

    python benchmarks/published_sudokus.py rated_puzzles.csv.gz --out build/published
    hardtail study advance sudoku-quarter --data build/published.npz   # the runs are called …-on-published

`…-test.npz` has the study's numbers of puzzles of every tier. `….npz` has its numbers for training: all easy puzzles of
the list, generated ones in addition until there are 554,000, 16,000 of the tier *medium*, 100 *hard*, and one of each
higher tier, as far as the list has them. Puzzles of the list whose solution occurs in the test file, in whatever
disguise, are left out. Of the logical orders the training file has only the one that a run counts its coverage by.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from msgspec import structs

from hardtail.core.files import save_instances
from hardtail.core.seeds import Streams
from hardtail.core.types import Instances
from hardtail.tasks.base import Part, shuffled
from hardtail.tasks.datasets import TRAIN, Built, draw, load
from hardtail.tasks.sudoku.task import TIERS, Sudoku
from hardtail.tasks.sudoku.task import TRAIN as SIZES

ORDER = Sudoku.order_names[0]


def lean(instances: Instances) -> Instances:
    """Tokens, masks and one order."""
    return replace(instances.bare(), orders={ORDER: instances.orders[ORDER]})


def training(task: Sudoku, listed: Instances, test: Instances, sizes: tuple[int, ...], seed: int) -> Instances:
    """Listed puzzles of every tier that share no solution with the test file, and generated easy ones, shuffled."""
    held = set(task.kin(test))
    listed = listed.take(np.array([kin not in held for kin in task.kin(listed)]))
    rng = Streams(seed).named("sudoku/published")
    parts = []
    for tier, size in zip(TIERS, sizes, strict=True):
        inside = np.flatnonzero(listed.strata["tier"] == tier)
        parts.append(lean(listed.take(shuffled(inside, rng.child(tier))[:size])))
        if (missing := size - len(parts[-1])) and tier == TIERS[0]:
            parts.append(lean(draw(task, TRAIN, Part(f"tier={tier}", missing), seed)))
    made = Instances.concat(parts)
    return made.take(shuffled(np.arange(len(made)), rng.child("shuffle")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", help="a table `question[,answer][,rating]`, or hub:OWNER/NAME:SPLIT")
    parser.add_argument("--out", type=Path, default=Path("build/published"), help="without its ending")
    parser.add_argument("--seed", type=int, default=42)
    given = parser.parse_args()
    task = Sudoku()
    everything: Built = load(task, given.list, seed=given.seed)
    test: Built = load(task, given.list, "test", given.seed)
    made = training(task, everything.instances, test.instances, SIZES, given.seed)
    for instances, manifest, path in (
        (test.instances, test.manifest, given.out.with_name(f"{given.out.name}-test.npz")),
        (made, structs.replace(everything.manifest, split=TRAIN), given.out.with_suffix(".npz")),
    ):
        distinct = len(np.unique(instances.tokens_NL, axis=0))
        apart = "the list by the solution, in any disguise"
        save_instances(path, instances, structs.replace(manifest, distinct=distinct, train_and_test=apart))
        print(f"{path}: {len(instances):,} puzzles")


if __name__ == "__main__":
    main()
