"""Compare our Sudoku rating and solver with a file of rated puzzles.

    python benchmarks/check_sudoku_ratings.py rated_puzzles.csv.gz

The file has the columns `source,question,answer,rating` of *sudoku-extreme* (blanks as `.` or `0`). For each source a
seeded sample is rated and solved on one core; agreement is the share of puzzles with exactly the file's rating.
"""

import argparse
import csv
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from hardtail.files import read_lines
from hardtail.seeds import Streams
from hardtail.solvers.sudoku.rating import rate_many
from hardtail.solvers.sudoku.search import solve_many


def boards(texts: list[str]) -> NDArray[np.uint8]:
    digits = "".join(texts).replace(".", "0").encode()
    return np.array(np.frombuffer(digits, dtype=np.uint8).reshape(-1, 81) - ord("0"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Agreement of the Sudoku rating with a file of rated puzzles.")
    parser.add_argument("data", type=Path, help="CSV (or .csv.gz) with the columns source,question,answer,rating")
    parser.add_argument("--rows", type=int, default=3000, help="puzzles sampled from each source")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    by_source: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(read_lines(arguments.data)):
        by_source.setdefault(row["source"], []).append(row)

    blank = np.zeros((1, 81), dtype=np.uint8)
    rate_many(blank)  # compiles, so that it is not timed
    solve_many(blank)
    titles = f"{'same rating':>12} {'same zero':>10} {'same answer':>12} {'rate':>9} {'solve':>9}"
    print(f"{'source':28} {'puzzles':>8} {titles}")
    for source, rows in by_source.items():
        key_R = Streams(arguments.seed).named(f"check_sudoku_ratings/{source}").keys(len(rows))
        sample = [rows[i] for i in np.argsort(key_R)[: arguments.rows]]
        board_N81 = boards([row["question"] for row in sample])
        rating_N = np.array([int(row["rating"]) for row in sample])

        start = perf_counter()
        ours_N = rate_many(board_N81)
        rated = perf_counter()
        count_N, solution_N81 = solve_many(board_N81)
        solved = perf_counter()

        same_answer_N = (solution_N81 == boards([row["answer"] for row in sample])).all(axis=1) & (count_N == 1)
        print(
            f"{source:28} {len(sample):8,} {np.mean(ours_N == rating_N):12.2%} "
            f"{np.mean((ours_N == 0) == (rating_N == 0)):10.2%} {same_answer_N.mean():12.2%} "
            f"{(rated - start) / len(sample) * 1e3:6.3f} ms {(solved - rated) / len(sample) * 1e3:6.3f} ms"
        )


if __name__ == "__main__":
    main()
