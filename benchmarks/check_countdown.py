"""Compare our Countdown search with a CD4 file, row by row: gold chain and multiplicity.

    python benchmarks/check_countdown.py cd4_test.jsonl
    python benchmarks/check_countdown.py cd4_train.jsonl.gz --rows 20000

Exits with 1 where a row differs.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import hardtail
from hardtail import Streams
from hardtail.files import read_lines
from hardtail.tasks.countdown import BINS
from hardtail.tasks.strata import Stratum

SAMPLED = 20_000


def read_rows(path: Path, limit: int | None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_lines(path)[:limit]]


def compare(path: Path, limit: int | None) -> bool:
    """Solve every row from its input alone and print what agrees with the file."""
    task = hardtail.task("countdown")
    rows = read_rows(path, limit)
    task.parse([rows[0]["input"]])  # compile
    started = time.perf_counter()
    instances = task.parse([row["input"] for row in rows])
    seconds = time.perf_counter() - started
    gold = sum(task.answer_text(instances.take(slice(i, i + 1)), 0) == row["output"] for i, row in enumerate(rows))
    with_m = [i for i, row in enumerate(rows) if "m" in row]
    same_m = sum(int(instances.strata["m_raw"][i]) == rows[i]["m"] for i in with_m)
    print(f"{path.name}: {len(rows):,} rows, our gold on {gold:,}, our m on {same_m:,} of {len(with_m):,}")
    for count in ("m_raw", "m_distinct"):
        value_N = instances.strata[count]
        sizes = [int(Stratum.parse(name, ["m"], "countdown").holds({"m": value_N}).sum()) for name in BINS]
        print(f"  {count:<10} " + ", ".join(f"{name}: {size:,}" for name, size in zip(BINS, sizes, strict=True)))
    held = int(instances.strata["heldout"].sum())
    print(
        f"  held-out targets: {held:,} rows; longest chain {int((instances.extras['step_NA'] >= 0).sum(axis=1).max())}"
    )
    print(f"  read, solved and annotated: {len(rows) / seconds:,.0f} rows a second")
    return gold == len(rows) and same_m == len(with_m)


def measure() -> None:
    """Speed of drawing solvable puzzles with gold and both multiplicities, laid out and annotated."""
    task = hardtail.task("countdown")
    task.sample(1, Streams(0).named("bench/warm"))
    started = time.perf_counter()
    instances = task.sample(SAMPLED, Streams(0).named("bench/countdown"))
    seconds = time.perf_counter() - started
    m_N = instances.strata["m_raw"]
    share = np.array([(m_N >= 11).mean(), ((m_N > 3) & (m_N < 11)).mean(), (m_N <= 3).mean()])
    print(
        f"drawn: {SAMPLED / seconds:,.0f} puzzles a second on one core; shares of {', '.join(BINS)}: {share.round(3)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, default=None, help="only the first so many rows")
    arguments = parser.parse_args()
    agrees = compare(arguments.path, arguments.rows)
    measure()
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
