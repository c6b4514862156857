"""Compare our Countdown search with a CD4 file, row by row: gold chain and multiplicity.

    python benchmarks/check_countdown.py cd4_test.jsonl
    python benchmarks/check_countdown.py cd4_train.jsonl.gz --rows 20000

Exits with 1 where a row differs.
"""

import argparse
import json
import sys
from pathlib import Path

import hardtail
from arguments import how_many
from hardtail import Streams
from hardtail.core.files import read_lines
from hardtail.core.types import Array

SAMPLED = 20_000


def bins(m_N: Array) -> str:
    """Shares of the study's bins of multiplicity."""
    share = {"m=1-3": (m_N <= 3).mean(), "m=4-10": ((m_N > 3) & (m_N <= 10)).mean(), "m>=11": (m_N > 10).mean()}
    return ", ".join(f"{name}: {value:.3f}" for name, value in share.items())


def compare(path: Path, limit: int | None) -> bool:
    """Solve every row from its input alone and print what agrees with the file."""
    task = hardtail.task("countdown")
    rows = [json.loads(line) for line in read_lines(path)[:limit]]
    instances = task.parse([row["input"] for row in rows])
    gold = sum(task.answer_text(instances, i) == row["output"] for i, row in enumerate(rows))
    with_m = [i for i, row in enumerate(rows) if "m" in row]
    same_m = sum(int(instances.strata["m_raw"][i]) == rows[i]["m"] for i in with_m)
    print(f"{path.name}: {len(rows):,} rows, our gold on {gold:,}, our m on {same_m:,} of {len(with_m):,}")
    for count in ("m_raw", "m_distinct"):
        print(f"  {count:<10} {bins(instances.strata[count])}")
    held = int(instances.strata["heldout"].sum())
    longest = int((instances.extras["step_NA"] >= 0).sum(axis=1).max())
    print(f"  held-out targets: {held:,} rows; longest chain {longest}")
    return gold == len(rows) and same_m == len(with_m)


def show_own_shares() -> None:
    """The bins of our own generator, for targets that are not held out."""
    m_N = hardtail.task("countdown").sample(SAMPLED, Streams(0).named("check_countdown"), "heldout=0").strata["m_raw"]
    print(f"our generator, {SAMPLED:,} puzzles: {bins(m_N)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=how_many, default=None, help="only this many rows, from the first on")
    arguments = parser.parse_args()
    agrees = compare(arguments.path, arguments.rows)
    show_own_shares()
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
