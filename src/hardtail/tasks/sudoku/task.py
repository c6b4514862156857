"""Sudoku: a cell can be filled once the cells that it shares a unit with leave one digit for it.

Layout: 81 cells of the puzzle row by row, `=`, 81 cells of the solution. Tokens 1 to 9 are the digits and 0 the blank,
however it is written.

Shapes: N instances, C = A = 81 cells, L = 163.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.fields import Bounds
from hardtail.core.files import MOST_TEXT, read_lines
from hardtail.core.seeds import Stream
from hardtail.core.types import Array, Instances, Tokens
from hardtail.core.vocabulary import Vocabulary
from hardtail.tasks.base import Part, Task, shuffled
from hardtail.tasks.parts import Look, Roles, Words
from hardtail.tasks.strata import Stratum
from hardtail.tasks.sudoku import files
from hardtail.tasks.sudoku.solver import board
from hardtail.tasks.sudoku.solver.board import Board
from hardtail.tasks.sudoku.solver.generate import BEYOND, COMMON, MOST, rated_many
from hardtail.tasks.sudoku.solver.kin import shapes_many
from hardtail.tasks.sudoku.solver.rating import rate_many
from hardtail.tasks.sudoku.solver.search import solve_many
from hardtail.tasks.sudoku.solver.techniques import LEVELS, SEARCH, levels_many, technique_order

if TYPE_CHECKING:
    from rich.text import Text

    from hardtail.tasks.sudoku.profile import Profile

TIERS = ("easy", "medium", "hard", "very_hard", "extreme", "top1pct")
CUTS = {"release": (0, 21, 41, 68, 105), "paper": (0, 17, 34, 51, 101)}
TRAIN = (554_000, 16_000, 100, 1, 1, 1)
TEST = (1000, 1000, 500, 200, 100, 500)
SHARE_KEPT = 0.01
"""Of a loaded file, training keeps this share to the power of i of tier i."""
REACH = 170
"""The highest rating that the generator reaches, in about a second. *sudoku-extreme* goes up to 465."""
SHARE_BEYOND = 0.2
"""The share of puzzles beyond technique in rating ranges that both kinds of generated puzzles reach; that of published
puzzles of the tier *medium* (21 % of a sample)."""
MOST_EXTRA = 4
"""The most extra clues that leave enough puzzles beyond technique."""
_ROWS_AT_ONCE = 50_000
_TRIES = 200  # before a proposal that misses its range is given up
_VOCABULARIES = {blank: Vocabulary(f"{blank}123456789=") for blank in "0."}


@dataclass(frozen=True)
class Sudoku(Task):
    """9×9 Sudoku with one solution, stratified by guesses needed (`rating`, `tier`) and cells beyond technique (`tl4`).

    `rating`  guesses of a tdoku-like solver until the first solution; a loaded file's own rating where it has one
    `tl4`     fraction of the blanks that no technique short of search determines

    There are two kinds of generated puzzles. Random minimal ones have `tl4` 0, and 3 in 1,000 are rated 8 or more.
    Walks among hard puzzles have `tl4` 0.95 or more and ratings from 2 to about 170 (`REACH`). Natural and easy puzzles
    are minimal, `tier=hard` and above come from walks, like nearly all published puzzles of these tiers. One in five of
    `tier=medium` does (`tier=medium,tl4=0` and `tier=medium,tl4>=0.95` tell them apart).

    Walks begin at the puzzles of a library, and a model can learn what these have in common. So no family of the
    library is both trained and measured on (`kin`).
    """

    name: ClassVar[str] = "sudoku"
    edition: ClassVar[int] = 2
    axes: ClassVar[tuple[str, ...]] = ("rating", "tier", "tl4", "blanks")
    labels: ClassVar[Mapping[str, tuple[str, ...]]] = {"tier": TIERS}
    answer_characters = "123456789"
    seq_len, answer_len = 163, 81
    order_names: ClassVar[tuple[str, ...]] = ("constraint_propagation", "candidate_count", "technique")
    words: ClassVar[Words] = Words(
        "puzzles",
        "cell",
        {
            "constraint_propagation": "forced cells row by row, then guess by guess",
            "candidate_count": "fewest candidates first",
            "technique": "easiest first, by the technique a cell needs",
        },
        "Solve the Sudoku, which is written row by row with 0 for a blank. Write the solved grid the same way.",
    )
    short_headings: ClassVar[Mapping[str, Mapping[str, str]]] = {"first wrong": {"was a candidate": "candidate"}}
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "release": {},
        "paper": {"blank": ".", "tiers": "paper", "levels": "closure", "maskable": "answer"},
    }

    blank: Literal["0", "."] = "0"
    """The character of a blank cell."""
    tiers: Literal["release", "paper"] = "release"
    """Highest ratings of the tiers below `top1pct`: 0, 21, 41, 68, 105 (`release`) or 0, 17, 34, 51, 101 (`paper`)."""
    levels: Literal["released", "closure"] = "released"
    """Technique levels: the weakened hierarchy of the released code, or the order-independent closure of the same
    techniques. They decide `tl4`, the order `technique` and the extra `level_NA`."""
    maskable: Literal["blanks", "answer"] = "blanks"
    """Which answer cells can be hidden: those that are blank in the puzzle, or all 81. In the latter case copies of
    givens come first in every order and are always ready. Only blanks are scored in both."""
    extra_clues: Annotated[int, Bounds(ge=0, le=40)] = 0
    """Clues of the solution put back into a minimal puzzle. Puzzles beyond technique (`tier=hard` and above) allow at
    most 4, of which few still reach `top1pct`; `tier=medium` allows more, but its puzzles become easier with each."""

    @property
    def vocabulary(self) -> Vocabulary:
        return _VOCABULARIES[self.blank]

    def strata(self) -> list[str]:
        return ["natural", *(f"tier={tier}" for tier in TIERS), "tl4>=0.95"]

    def gallery(self) -> tuple[str, str]:
        return "tier=easy", "tier=top1pct"

    def problems_of(self, stratum: str) -> str:
        words = {f"tier={tier}": tier.replace("_", " ") for tier in TIERS} | {f"tier={TIERS[-1]}": "hardest"}
        return f"puzzles of the {words[stratum]} tier" if stratum in words else ""

    def splits(self) -> Mapping[str, Sequence[Part]]:
        sizes = {"train": TRAIN, "test": TEST}
        return {name: [Part(f"tier={tier}", n) for tier, n in zip(TIERS, sizes[name], strict=True)] for name in sizes}

    # -- generating ---------------------------------------------------------------------------------------------

    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        """A random minimal puzzle or one beyond technique, searched for by its rating."""
        low, high = self._ratings(stratum)
        walked = self._walked(stratum, low, high)
        return self._instances(*rated_many(key_N, low, high, _TRIES, walked, self.extra_clues))

    def _ratings(self, stratum: Stratum) -> tuple[int, int]:
        """The lowest and highest rating that the stratum's conditions allow."""
        edges = (-1, *CUTS[self.tiers], MOST)
        tier, rating = stratum.on("tier").label, stratum.on("rating")
        at = TIERS.index(tier) if tier else None
        low, high = (0, MOST) if at is None else (edges[at] + 1, edges[at + 1])
        low, high = int(np.ceil(max(low, rating.low))), int(np.floor(min(high, rating.high)))
        if low > high:
            raise HardtailError(f"sudoku: no rating meets {stratum}; the lowest allowed is above the highest")
        if low > REACH:
            raise HardtailError(
                f"sudoku: {stratum} is out of reach; puzzles are generated up to rating {REACH}, "
                "higher ones can be loaded from a file"
            )
        return low, high

    def _walked(self, stratum: Stratum, low: int, high: int) -> float:
        """The share of puzzles beyond technique for a stratum whose ratings are `low` to `high`."""
        tl4 = stratum.on("tl4")
        minimal = tl4.low <= 0 and low <= COMMON
        beyond = tl4.high >= BEYOND and high > 0
        if not (minimal or beyond):
            raise HardtailError(
                f"sudoku: no puzzle with {stratum} is generated; generated ones have tl4=0 and a rating below about "
                f"{COMMON}, or tl4>={BEYOND} and a rating of 2 or more; load a file for others"
            )
        if not minimal and self.extra_clues > MOST_EXTRA:
            raise HardtailError(
                f"sudoku: {self.extra_clues} extra clues would make puzzles with {stratum} too easy; give extra_clues "
                f"of at most {MOST_EXTRA}, or choose tier=medium or below"
            )
        if minimal and beyond:
            return SHARE_BEYOND if low > 0 and high > COMMON and self.extra_clues <= MOST_EXTRA else 0.0
        return float(beyond)

    def kin(self, instances: Instances) -> list[bytes]:
        """What all disguises of a solution share, so that no solution is on both sides. That no family of the library
        is, either, depends on the puzzles in it."""
        return [shape_K.tobytes() for shape_K in shapes_many(instances.answer_NA.astype(np.uint8))]

    # -- laying out ---------------------------------------------------------------------------------------------

    def _instances(self, puzzle_NC: Board, solution_NC: Board, rating_N: NDArray[np.int32]) -> Instances:
        """Annotate in portions, because sorting needs many times the memory of the result."""
        portions = [slice(at, at + _ROWS_AT_ONCE) for at in range(0, max(len(puzzle_NC), 1), _ROWS_AT_ONCE)]
        return Instances.concat([self._annotated(puzzle_NC[at], solution_NC[at], rating_N[at]) for at in portions])

    def _annotated(self, puzzle_NC: Board, solution_NC: Board, rating_N: NDArray[np.int32]) -> Instances:
        n = len(puzzle_NC)
        blank_NC = puzzle_NC == 0
        level_NC, pass_NC = levels_many(puzzle_NC, self.levels)
        orders = {
            "constraint_propagation": board.solver_order_many(puzzle_NC),
            "candidate_count": board.candidate_count_many(puzzle_NC),
            "technique": technique_order(level_NC, pass_NC),
        }
        maskable_NC = blank_NC
        if self.maskable == "answer":
            maskable_NC = np.ones_like(blank_NC)
            orders = {name: rank_NC + np.int8(1) for name, rank_NC in orders.items()}
        blanks_N = blank_NC.sum(axis=1).astype(np.int16)
        equals_N1 = np.full((n, 1), self.vocabulary.id("="), dtype=np.uint8)
        return Instances(
            tokens_NL=np.concatenate([puzzle_NC, equals_N1, solution_NC], axis=1),
            prompt_len_N=np.full(n, 82, dtype=np.int32),
            maskable_NA=maskable_NC,
            scored_NA=blank_NC,
            orders=orders,
            # The prerequisites of a cell depend on what else is known, so `ready` looks at the board instead.
            parents_NAE=np.empty((n, 81, 0), dtype=np.int8),
            strata={
                "rating": rating_N.astype(np.int32),
                "tier": np.array(TIERS)[np.searchsorted(CUTS[self.tiers], rating_N)],
                "tl4": ((level_NC == SEARCH).sum(axis=1) / blanks_N).astype(np.float32),
                "blanks": blanks_N,
            },
            extras={"level_NA": level_NC},
        )

    # -- reading ------------------------------------------------------------------------------------------------

    def prompts(self, lines: Sequence[str]) -> list[str]:
        """One puzzle per line, grids of nine lines, or the column `question` of a table."""
        return list(files.read_puzzles(lines).question)

    def parse(self, prompts: Sequence[str]) -> Instances:
        return self._solved(files.Puzzles.alone(prompts))

    def fetch(self, source: str) -> Path:
        """A file's path, or `hub:OWNER/NAME:SPLIT`: a data set of the Hugging Face hub, such as *sudoku-extreme*."""
        return files.fetch(source)

    def load(self, path: Path, limit: int = MOST_TEXT) -> Instances:
        """Puzzles from a table `question[,answer][,rating]` or a plain list, gzipped or not.

        The file's answers are checked; its ratings are kept, and decide the tier.
        """
        return self._solved(files.read_puzzles(read_lines(path, limit)))

    def _solved(self, puzzles: files.Puzzles) -> Instances:
        puzzle_NC = files.read_givens(puzzles)
        count_N, solution_NC = solve_many(puzzle_NC)
        files.check_solutions(puzzles, count_N, solution_NC)
        rating_N = puzzles.rating_N.copy()
        unrated_N = rating_N < 0
        rating_N[unrated_N] = rate_many(puzzle_NC[unrated_N])
        return self._instances(puzzle_NC, solution_NC, rating_N)

    def curate(self, instances: Instances, split: str, rng: Stream) -> Instances:
        """For training all easy puzzles and a share 0.01^i of tier i, at least one, shuffled (docs/study.md §6)."""
        if split != "train":
            return super().curate(instances, split, rng)
        chosen = []
        for i, tier in enumerate(TIERS):
            inside = np.flatnonzero(instances.strata["tier"] == tier)
            chosen.append(shuffled(inside, rng.child(tier))[: max(1, int(inside.size * SHARE_KEPT**i))])
        return instances.take(shuffled(np.concatenate(chosen), rng.child("shuffle")))

    def read_answer(self, instances: Instances, i: int, text: str) -> Tokens:
        return files.read_boards([text], what="answer")[0]

    # -- judging ------------------------------------------------------------------------------------------------

    def check(self, instances: Instances, answer_NA: Array) -> NDArray[np.bool_]:
        """Which answers match the solution in all 81 cells, givens included."""
        return np.asarray((answer_NA == instances.answer_NA).all(axis=1))

    def fault(self, instances: Instances, i: int, answer_A: Array) -> str | None:
        wrong_A = answer_A != instances.answer(i)
        if not wrong_A.any():
            return None
        puzzle_C = instances.tokens_NL[i, :81]
        if (changed_A := wrong_A & (puzzle_C > 0)).any():
            cell = int(np.argmax(changed_A))
            return f"{files.cell_place(cell)} is {self._sign(answer_A[cell])}; the puzzle gives {puzzle_C[cell]} there"
        if (empty_A := (answer_A < 1) | (answer_A > 9)).any():
            cell = int(np.argmax(empty_A))
            return f"{files.cell_place(cell)} is {self._sign(answer_A[cell])}; it must be a digit from 1 to 9"
        # The solution is the only grid without a clash, and two right cells never clash: some wrong cell does.
        cell = int(np.argmax(wrong_A & (answer_A[board.PEERS] == answer_A[:, None]).any(axis=1)))
        unit = next(unit for unit in board.UNITS_OF[cell] if (answer_A[board.UNITS[unit]] == answer_A[cell]).sum() > 1)
        return (
            f"{files.cell_place(cell)} is wrong: the {answer_A[cell]} occurs twice in {files.unit_name(unit)}; "
            f"wrong cells: {int(wrong_A.sum())} of {int((puzzle_C == 0).sum())}"
        )

    def _sign(self, token: int) -> str:
        sign = self.vocabulary.decode(np.array([token]))
        return "blank" if sign == self.blank else sign

    def ready(self, instances: Instances, revealed_NA: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Cells that are known, or that givens and revealed cells determine by a naked or hidden single now."""
        known_NC = revealed_NA | (instances.tokens_NL[:, :81] > 0)
        return known_NC | board.singles(np.where(known_NC, instances.answer_NA, 0).astype(np.uint8))

    # -- for people ---------------------------------------------------------------------------------------------

    def cell_name(self, cell: int) -> str:
        return f"r{cell // 9 + 1}c{cell % 9 + 1}"

    def drawing(self, one: Instances, look: Look) -> "Text":
        from hardtail.tasks.sudoku.draw import drawing

        return drawing(one, look)

    def roles(self, instances: Instances) -> Roles:
        return Roles.of_extra(instances, "level_NA", LEVELS)

    def extra_limits(self) -> Mapping[str, int]:
        return {"level_NA": len(LEVELS)}

    @classmethod
    def profile_type(cls) -> "type[Profile]":
        from hardtail.tasks.sudoku.profile import Profile

        return Profile
