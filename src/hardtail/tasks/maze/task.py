"""Mazes: which open cells are on the path from S to E; a corridor is on the path or off it as a whole.

Layout: the grid row by row, `=`, the same grid with every open cell marked 1 (on the path) or 0, padding.

Shapes: N instances, C = A grid cells, E parents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.fields import Bounds, Probability
from hardtail.core.types import Array, Instances, Trace
from hardtail.core.vocabulary import Vocabulary
from hardtail.tasks.base import Part, Task
from hardtail.tasks.maze import solver
from hardtail.tasks.parts import Look, Pen, Roles, Words
from hardtail.tasks.strata import Stratum

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.text import Text

    from hardtail.tasks.maze.profile import Profile

SWEEP = (2, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60)
DIAGNOSIS = (4, 8, 12, 16, 20, 24, 28)
MAX_SIZE = 32
_LOOKS = {"#": ("██", "bright_black"), "0": ("  ", ""), "1": ("• ", "bold cyan")}


@dataclass(frozen=True)
class Maze(Task):
    """Mazes of `size` × `size` rooms, stratified by the longest corridor of the path.

    The released strata draw longer corridors from straighter mazes, so that along them the texture of the walls changes
    too: see `stratum_bias` and the axis `straightness`.
    """

    name: ClassVar[str] = "maze"
    axes: ClassVar[tuple[str, ...]] = ("corridor", "path", "on_path", "straightness")
    order_names: ClassVar[tuple[str, ...]] = ("dead_end_filling", "dead_end_rounds")
    words: ClassVar[Words] = Words(
        "mazes",
        "cell",
        {"dead_end_filling": "dead ends first", "dead_end_rounds": "dead ends first, all tips at once"},
        "A maze is written row by row: # is a wall, . is open, S is the start and E is the end. Write it again with 1 "
        "for every open cell on the shortest path from S to E and 0 for every other open cell.",
        ("corridor>=", "mazes with a corridor of {} or more cells"),
    )
    vocabulary = Vocabulary("#.01SE=")
    profile_renamed: ClassVar[Mapping[str, str]] = dict(
        zip("01234", ("none", "one", "two", "three", "four"), strict=True)
    )
    short_headings: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "roles": {"corridor endpoint": "endpoint", "corridor entrance": "entrance", "dead end tip": "tip"}
    }
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "release": {},
        "paper": {
            "root": "random",
            "endpoints": "farthest",
            "maskable": "answer",
            "stratum_bias": "none",
            "trailing_pad": 0,
        },
    }

    size: Annotated[int, Bounds(ge=2, le=MAX_SIZE)] = 10
    """Rooms per side."""
    bias: Probability = 0.0
    """Probability that carving continues straight ahead where it can."""
    root: Literal["corner", "random"] = "corner"
    """Where carving starts."""
    endpoints: Literal["corners", "farthest"] = "corners"
    """Start and goal: opposite corners, or the two cells farthest apart."""
    maskable: Literal["open", "answer"] = "open"
    """Hidden cells: the open cells except S and E, or the whole answer grid, walls included."""
    stratum_bias: Literal["rising", "none"] = "rising"
    """`rising`: `corridor>=L` is drawn with bias min(0.95, 0.3 + 0.03·L); `none`: with `bias` like every maze."""
    trailing_pad: Annotated[int, Bounds(ge=0)] = 1
    """Cells of padding after the answer."""

    @property
    def side(self) -> int:
        return 2 * self.size + 1

    @property
    def answer_characters(self) -> str:
        return "01" if self.maskable == "open" else "#01SE"

    @property
    def seq_len(self) -> int:
        return 2 * self.side**2 + 1 + self.trailing_pad

    @property
    def answer_len(self) -> int:
        return self.side**2

    @property
    def most_hidden(self) -> int:
        """All but the walls, S and E: a tree of rooms has one passage fewer than rooms."""
        return 2 * self.size**2 - 3 if self.maskable == "open" else self.answer_len

    def strata(self) -> list[str]:
        return ["natural", *(f"corridor>={length}" for length in self._within(SWEEP))]

    def splits(self) -> Mapping[str, Sequence[Part]]:
        splits = {
            "train": [Part("natural", 10_000)],
            "test": [Part("natural", 5_000)],
            "sweep": [Part(f"corridor>={length}", 300) for length in self._within(SWEEP)],
            "diagnosis": [Part(f"corridor>={length}", 300) for length in self._within(DIAGNOSIS)],
        }
        return {split: parts for split, parts in splits.items() if parts}

    def _within(self, lengths: Sequence[int]) -> list[int]:
        """The corridors that are common enough to sample at this size; 60 is at 10 × 10."""
        return [length for length in lengths if length <= 0.6 * self.size**2]

    # -- generating ---------------------------------------------------------------------------------------------

    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        corridor, bias = stratum.on("corridor").low, self.bias
        if self.stratum_bias == "rising" and corridor > 0:
            bias = min(0.95, 0.3 + 0.03 * corridor)
        mazes = solver.generate_many(key_N, self.size, bias, self.root == "random", self.endpoints == "farthest")
        return self._instances(*mazes)

    # -- laying out ---------------------------------------------------------------------------------------------

    def _instances(
        self, open_NC: NDArray[np.bool_], start_N: NDArray[np.int64], goal_N: NDArray[np.int64]
    ) -> Instances:
        n, c = open_NC.shape
        noted = solver.annotate_many(open_NC, start_N, goal_N, self.side)
        self._refuse_unsolved(noted.status_N, open_NC, start_N)
        ident, row_N = self.vocabulary.id, np.arange(n)

        prompt_NC = np.where(open_NC, ident("."), ident("#")).astype(np.uint8)
        answer_NC = np.where(open_NC, np.where(noted.on_path_NC, ident("1"), ident("0")), ident("#")).astype(np.uint8)
        for grid_NC in (prompt_NC, answer_NC):
            grid_NC[row_N, start_N], grid_NC[row_N, goal_N] = ident("S"), ident("E")
        tokens_NL = np.full((n, self.seq_len), self.vocabulary.pad_id, dtype=np.uint8)
        tokens_NL[:, :c], tokens_NL[:, c], tokens_NL[:, c + 1 : 2 * c + 1] = prompt_NC, ident("="), answer_NC

        ends_N2 = np.stack([start_N, goal_N], axis=1)
        hidden_NC = open_NC.copy()
        np.put_along_axis(hidden_NC, ends_N2, False, axis=1)
        rank_NC, round_NC = noted.rank_NC, noted.round_NC
        if self.maskable == "answer":  # walls, S and E can be copied at once: they come first
            rank_NC, round_NC = rank_NC + np.int16(1), round_NC + np.int16(1)
            hidden_NC = np.ones_like(hidden_NC)
        return Instances(
            tokens_NL=tokens_NL,
            prompt_len_N=np.full(n, c + 1, dtype=np.int32),
            maskable_NA=hidden_NC,
            scored_NA=hidden_NC,
            orders={"dead_end_filling": rank_NC, "dead_end_rounds": round_NC},
            parents_NAE=noted.parent_NCE,
            strata={
                "corridor": noted.corridor_N,
                "path": noted.path_N,
                "on_path": (noted.path_N / open_NC.sum(axis=1)).astype(np.float32),
                "straightness": noted.straightness_N,
            },
        )

    def _refuse_unsolved(
        self, status_N: NDArray[np.int64], open_NC: NDArray[np.bool_], start_N: NDArray[np.int64]
    ) -> None:
        if (status_N == solver.NO_PATH).any():
            raise HardtailError("maze: there is no path from S to E")
        if (status_N == solver.LOOP).any():
            raise HardtailError("maze: the open cells form a loop, so the path is not unique; close one cell of it")
        if (status_N == solver.ISLAND).any():
            i = int(np.argmax(status_N == solver.ISLAND))
            came_from_C = solver.search(open_NC[i], self.side, start_N[i])[1]
            cell = int(np.argmax(open_NC[i] & (came_from_C < 0)))
            raise HardtailError(
                f"maze: the open cell at {self._place(cell)} is not connected with S; close it or open a way to it"
            )

    # -- reading and judging ------------------------------------------------------------------------------------

    def fitted(self, prompt: str) -> "Maze":
        side = isqrt(len("".join(prompt.split())))
        return replace(self, size=min(max((side - 1) // 2, 2), MAX_SIZE))

    def prompts(self, lines: Sequence[str]) -> list[str]:
        """Grids drawn over several lines, one below the other, or one flat maze per line."""
        lines = [line.strip() for line in lines]
        if all("S" in line and "E" in line and _may_be_flat(len(line)) for line in lines):
            return list(lines)
        if all(isqrt(len(line)) ** 2 == len(line) > 2 * MAX_SIZE + 1 for line in lines):
            return list(lines)  # flat mazes too; `parse` says which has no S or no E
        width = len(lines[0])
        if len(lines) % width or any(len(line) != width for line in lines):
            raise HardtailError(
                f"maze: {len(lines)} lines of {_span([len(line) for line in lines])} characters do not form square "
                "grids; draw each maze with as many lines as columns, using #, ., one S and one E"
            )
        return ["\n".join(lines[at : at + width]) for at in range(0, len(lines), width)]

    def parse(self, prompts: Sequence[str]) -> Instances:
        grids = [self._grid(prompt) for prompt in prompts]
        grid_NC = np.array(grids, dtype=np.uint8).reshape(len(grids), self.answer_len)
        start_N, goal_N = ((grid_NC == ord(end)).argmax(axis=1).astype(np.int64) for end in "SE")
        return self._instances(grid_NC != ord("#"), start_N, goal_N)

    def _grid(self, prompt: str) -> NDArray[np.uint8]:
        """The cells of one drawn maze as ASCII codes."""
        rows = prompt.removesuffix("=").split()
        flat = "".join(rows)
        if stranger := next((sign for sign in flat if sign not in "#.SE"), None):
            raise HardtailError(f"maze: {stranger!r} is not a cell; a maze is drawn with #, ., one S and one E")
        if len(flat) != self.answer_len or (len(rows) > 1 and {len(row) for row in rows} != {self.side}):
            given = (
                f"{len(rows)} rows of {_span([len(row) for row in rows])}" if len(rows) > 1 else f"{len(flat)} cells"
            )
            raise HardtailError(
                f"maze: the grid has {given}; it must have {self.side} rows of {self.side} (size={self.size})"
            )
        for end in "SE":
            if flat.count(end) != 1:
                raise HardtailError(f"maze: the grid has {flat.count(end)} cells {end}; it must have exactly one")
        grid_C = np.frombuffer(flat.encode("ascii"), dtype=np.uint8)
        border = np.pad(np.zeros((self.side - 2, self.side - 2), dtype=np.bool_), 1, constant_values=True).ravel()
        if (grid_C[border] != ord("#")).any():
            cell = int(np.flatnonzero(border & (grid_C != ord("#")))[0])
            raise HardtailError(f"maze: the border is open at {self._place(cell)}; it must be # all round")
        return grid_C

    def _place(self, cell: int) -> str:
        return f"row {cell // self.side + 1}, column {cell % self.side + 1}"

    def cell_name(self, cell: int) -> str:
        return f"r{cell // self.side + 1}c{cell % self.side + 1}"

    def fault(self, instances: Instances, i: int, answer_A: Array) -> str | None:
        wrong = np.flatnonzero((answer_A != instances.answer(i)) & instances.scored_NA[i])
        if not wrong.size:
            return None
        cell = int(wrong[0])
        meaning = {"0": "off the path", "1": "on the path", "#": "a wall", "S": "the start", "E": "the goal"}
        given, gold = self.signs_at(cell, answer_A, instances.answer(i))
        return (
            f"{self._place(cell)} is {given!r}; it is {meaning[gold]} ({gold!r}); "
            f"wrong cells: {wrong.size} of {int(instances.scored_NA[i].sum())}"
        )

    # -- for people ---------------------------------------------------------------------------------------------

    def drawing(self, one: Instances, look: Look) -> "Text":
        """Walls, the path, start and goal."""
        from rich.text import Text

        text = Text()
        for cell in range(self.answer_len):
            sign, style = look(cell)
            drawn, usual = _LOOKS.get(sign, (f"{sign} ", "bold yellow"))
            text.append("\n" if cell and cell % self.side == 0 else "").append(drawn, style or usual)
        return text

    def roles(self, instances: Instances) -> Roles:
        from hardtail.tasks.maze.profile import ROLES, roles

        if not instances.orders:
            return Roles.none(instances)
        return Roles(ROLES, roles(self, instances).astype(np.uint8))

    def figures(self, trace: Trace, pen: Pen) -> "Mapping[str, Figure]":
        from hardtail.tasks.maze.figures import regions_figure

        return {"regions": regions_figure(self, trace, pen)}

    @classmethod
    def profile_type(cls) -> "type[Profile]":
        from hardtail.tasks.maze.profile import Profile

        return Profile


def _may_be_flat(length: int) -> bool:
    """Whether a line of this length may be a whole maze, and is not just one line of a drawn one."""
    return length > 2 * MAX_SIZE or isqrt(length) ** 2 == length


def _span(lengths: Sequence[int]) -> str:
    low, high = min(lengths), max(lengths)
    return str(low) if low == high else f"{low} to {high}"
