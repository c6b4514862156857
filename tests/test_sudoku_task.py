"""The Sudoku task: reading and refusing puzzles, judging, readiness, curation."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardtail.core.errors import HardtailError
from hardtail.core.seeds import Streams
from hardtail.tasks.sudoku.solver.search import solve_many
from hardtail.tasks.sudoku.task import REACH, TIERS, Sudoku
from tests import sudoku_reference as slow

# The puzzle and the solution that the paper prints.
PUZZLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
ANSWER = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
INKALA = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
INKALA_ANSWER = "812753649943682175675491283154237896369845721287169534521974368438526917796318452"
TASK = Sudoku()


def changed(text: str, cell: int, sign: str) -> str:
    return text[:cell] + sign + text[cell + 1 :]


# -- reading puzzles ----------------------------------------------------------------------------------------------


def test_the_papers_example_is_solved() -> None:
    instances = TASK.parse([PUZZLE, INKALA])
    assert [TASK.answer_text(instances, i) for i in range(2)] == [ANSWER, INKALA_ANSWER]
    assert instances.strata["tier"][0] == "easy"
    assert instances.strata["rating"][0] == 0
    assert instances.strata["rating"][1] > 0
    assert instances.strata["tl4"].tolist() == [0, 1]
    assert instances.strata["blanks"].tolist() == [PUZZLE.count("."), INKALA.count(".")]


@settings(deadline=None, max_examples=30)
@given(
    breaks=st.lists(st.tuples(st.integers(0, 81), st.sampled_from([" ", "\n", "\t"])), max_size=20), zero=st.booleans()
)
def test_spaces_and_the_sign_for_blanks_do_not_matter(breaks: list[tuple[int, str]], zero: bool) -> None:
    text = PUZZLE.replace(".", "0") if zero else PUZZLE
    for at, space in breaks:
        text = text[:at] + space + text[at:]
    for task in (TASK, Sudoku.preset("paper")):
        assert task.render(task.parse([text])) == [PUZZLE.replace(".", task.blank)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (PUZZLE[:-1], "the puzzle has length 80; give 81"),
        ("", "has length 0"),
        (changed(PUZZLE, 10, "x"), "'x' at row 2, column 2 is not a cell"),
        (changed(PUZZLE, 10, "é"), "'é' at row 2, column 2 is not a cell"),
        (changed(PUZZLE, 10, "∞"), "'∞' at row 2, column 2 is not a cell"),
        (changed(PUZZLE, 2, "7"), "the 7 occurs twice in row 1"),
        (changed(PUZZLE, 27 + 1, "9"), "the 9 occurs twice in column 2"),
        (changed(PUZZLE, 11, "3"), "the 3 occurs twice in box 1"),
        (changed(PUZZLE, 2, "2"), "no solution"),
        (changed(INKALA, 0, "."), "several solutions"),
        ("." * 81, "several solutions"),
        (ANSWER, "no blank cell"),
    ],
)
def test_what_is_no_puzzle_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(HardtailError, match=sentence):
        TASK.parse([INKALA, text])


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="0123456789.= x\n", max_size=90))
def test_any_text_is_solved_or_refused(text: str) -> None:
    try:
        instances = TASK.parse([text])
    except HardtailError:
        return
    assert TASK.check(instances, instances.answer_NA).all()


# -- judging ------------------------------------------------------------------------------------------------------


def verdict(answer: str) -> tuple[bool, str | None]:
    instances = TASK.parse([PUZZLE])
    tokens_A = TASK.read_answer(instances, 0, answer)
    return bool(TASK.check(instances, tokens_A[None])[0]), TASK.fault(instances, 0, tokens_A)


def test_the_reason_names_the_cell() -> None:
    assert verdict("\n".join(ANSWER[at : at + 9] for at in range(0, 81, 9))) == (True, None)
    valid, reason = verdict(changed(ANSWER, 2, "6"))
    assert not valid
    assert reason is not None
    assert reason.startswith("row 1, column 3 is wrong: the 6 occurs twice in row 1")
    assert verdict(changed(ANSWER, 0, "4")) == (False, "row 1, column 1 is 4; the puzzle gives 5 there")
    assert verdict(changed(ANSWER, 2, ".")) == (False, "row 1, column 3 is blank; it must be a digit from 1 to 9")


@pytest.mark.parametrize(
    ("answer", "sentence"), [(ANSWER[1:], "answer has length 80"), (changed(ANSWER, 3, "b"), "'b' at row 1")]
)
def test_what_is_no_answer_is_refused(answer: str, sentence: str) -> None:
    with pytest.raises(HardtailError, match=sentence):
        verdict(answer)


@settings(deadline=None, max_examples=40)
@given(cells=st.lists(st.tuples(st.integers(0, 80), st.integers(0, 12)), max_size=4))
def test_check_and_fault_agree(cells: list[tuple[int, int]]) -> None:
    for task in (TASK, Sudoku.preset("paper")):
        instances = task.parse([PUZZLE])
        answer_A = instances.answer_NA[0].copy()
        for cell, token in cells:
            answer_A[cell] = token
        right = bool(task.check(instances, answer_A[None])[0])
        assert right == (task.fault(instances, 0, answer_A) is None)
        assert right == (answer_A == instances.answer_NA[0]).all()


# -- readiness ----------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(
    hidden=st.sets(st.integers(0, 80)),
    puzzle=st.sampled_from([PUZZLE, INKALA]),
    preset=st.sampled_from(["release", "paper"]),
)
def test_ready_is_a_naked_or_hidden_single(hidden: set[int], puzzle: str, preset: str) -> None:
    task = Sudoku.preset(preset)
    instances = task.parse([puzzle])
    revealed_NA = np.array([[cell not in hidden for cell in range(81)]]) & instances.maskable_NA
    board = [int(digit) if sign != "." else 0 for sign, digit in zip(puzzle, instances.answer_NA[0], strict=True)]
    board = [digit or int(instances.answer_NA[0, c]) * int(revealed_NA[0, c]) for c, digit in enumerate(board)]
    possible = [
        {board[cell]} if board[cell] else set(range(1, 10)) - {board[peer] for peer in slow.PEERS[cell]}
        for cell in range(81)
    ]
    expected = [
        len(possible[cell]) == 1
        or any(
            sum(digit in possible[c] for c in unit) == 1
            for digit in possible[cell]
            for unit in slow.UNITS
            if cell in unit
        )
        for cell in range(81)
    ]
    assert task.ready(instances, revealed_NA)[0].tolist() == expected


def test_singles_alone_solve_the_papers_example_and_nothing_of_inkalas() -> None:
    instances = TASK.parse([PUZZLE, INKALA])
    revealed_NA = np.zeros_like(instances.maskable_NA)
    for _ in range(81):
        revealed_NA = TASK.ready(instances, revealed_NA) & instances.maskable_NA
    assert (revealed_NA == instances.maskable_NA)[0].all()
    assert not revealed_NA[1].any()


# -- strata and splits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "edges"), [("release", (0, 21, 41, 68, 105)), ("paper", (0, 17, 34, 51, 101))])
def test_tier_edges(tmp_path: Path, preset: str, edges: tuple[int, ...]) -> None:
    ratings = [rating for edge in edges for rating in (edge, edge + 1)]
    (tmp_path / "r.csv").write_text("question,rating\n" + "".join(f"{PUZZLE},{rating}\n" for rating in ratings))
    tiers = Sudoku.preset(preset).load(tmp_path / "r.csv").strata["tier"].tolist()
    assert tiers == [tier for pair in pairwise(TIERS) for tier in pair]


def test_training_keeps_all_easy_puzzles_and_a_hundredth_more_of_each_tier(tmp_path: Path) -> None:
    ratings = [0] * 300 + [5] * 250 + [30] * 40 + [50] * 3
    (tmp_path / "r.csv").write_text("question,rating\n" + "".join(f"{PUZZLE},{rating}\n" for rating in ratings))
    loaded = TASK.load(tmp_path / "r.csv")
    kept = TASK.curate(loaded, "train", Streams(0).named("curate")).strata["tier"]
    assert [int((kept == tier).sum()) for tier in TIERS] == [300, 2, 1, 1, 0, 0]
    assert (kept[:300] != "easy").any() or (kept[-4:] == "easy").any()  # shuffled
    test = TASK.curate(loaded, "test", Streams(0).named("curate")).strata["tier"]
    assert [int((test == tier).sum()) for tier in TIERS] == [300, 250, 40, 3, 0, 0]


@pytest.mark.parametrize(
    ("stratum", "axis", "low", "high"),
    [
        ("tier=easy", "rating", 0, 0),
        ("tier=medium,rating<=2", "rating", 1, 2),
        ("rating=3-8", "rating", 3, 8),
        ("blanks>=57", "blanks", 57, 64),
        ("tl4>=0.95", "tl4", 0.95, 1),
        ("tl4<=0.5", "tl4", 0, 0.5),
        ("tier=medium,tl4=0", "tl4", 0, 0),
        ("tier=medium,tl4=0.2-1", "tl4", 0.95, 1),
        ("tier=hard,tl4>=0.95", "rating", 22, 41),
        ("tier=top1pct", "rating", 106, 1000),
    ],
)
def test_strata_are_hit(stratum: str, axis: str, low: float, high: float) -> None:
    instances = TASK.sample(5, Streams(1).named("strata"), stratum)
    texts = TASK.render(instances)
    assert len(set(texts)) == 5
    value_N = TASK.parse(texts).strata[axis]
    assert ((value_N >= low) & (value_N <= high)).all()


def test_the_highest_rating_that_is_promised_is_made() -> None:
    made = TASK.sample(1, Streams(1).named("reach"), f"rating>={REACH}")
    assert TASK.parse(TASK.render(made)).strata["rating"][0] >= REACH


def test_medium_puzzles_do_not_confound_rating_and_technique() -> None:
    strata = TASK.sample(200, Streams(1).named("mixed"), "tier=medium").strata
    beyond = strata["tl4"] >= 0.95
    assert beyond.mean() == pytest.approx(0.2, abs=0.1)
    assert strata["rating"][beyond].min() < strata["rating"][~beyond].max()


@pytest.mark.parametrize("tier", ["medium", "hard", "extreme"])
def test_extra_clues_in_every_tier(tier: str) -> None:
    task = Sudoku(extra_clues=3)
    instances = task.sample(3, Streams(1).named("extra"), f"tier={tier}")
    assert task.parse(task.render(instances)).strata["tier"].tolist() == [tier] * 3
    for puzzle in instances.tokens_NL[:, :81]:
        less = np.where(np.eye(81, dtype=np.bool_), 0, puzzle).astype(np.uint8)[puzzle > 0]
        assert (solve_many(less)[0] == 1).sum() >= 3  # clues that the puzzle does not need


@pytest.mark.parametrize(
    ("stratum", "sentence"),
    [
        ("tier=brutal", "easy, medium"),
        ("tier=easy,rating>=5", "no rating meets"),
        ("rating=2.2-2.8", "no rating meets"),
        (f"rating>={REACH + 1}", f"up to rating {REACH}"),
        ("tl4=0.2-0.6", "no puzzle with tl4=0.2-0.6 is generated; .* load a file"),
        ("tier=hard,tl4<=0.5", "no puzzle with tier=hard,tl4<=0.5 is generated"),
        ("tier=easy,tl4>=0.95", "no puzzle with tier=easy,tl4>=0.95 is generated"),
    ],
)
def test_strata_that_cannot_be_are_refused(stratum: str, sentence: str) -> None:
    with pytest.raises(HardtailError, match=sentence):
        TASK.sample(1, Streams(1).named("strata"), stratum)


def test_extra_clues_that_hard_puzzles_do_not_stand_are_refused() -> None:
    with pytest.raises(
        HardtailError, match=r"5 extra clues would make puzzles .* too easy; give extra_clues of at most 4"
    ):
        Sudoku(extra_clues=5).sample(1, Streams(1).named("strata"), "tier=hard")


@pytest.mark.parametrize("preset", ["release", "paper"])
def test_bare_instances_are_judged_and_drawn(preset: str) -> None:
    task = Sudoku.preset(preset)
    assert len(task.parse([])) == 0
    full = task.parse([PUZZLE, INKALA])
    bare = full.bare()
    assert "5 3 4" in task.picture(bare, 0).plain
    assert task.ready(bare, bare.maskable_NA).all()
    wrong_NA = np.where(full.scored_NA, full.answer_NA % 9 + 1, full.answer_NA)
    for i in range(2):
        assert task.fault(bare, i, full.answer_NA[i]) is None
        assert task.fault(bare, i, wrong_NA[i]) == task.fault(full, i, wrong_NA[i]) is not None
