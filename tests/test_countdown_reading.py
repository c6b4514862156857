"""Countdown: puzzles, answers and files as people and programs write them, and what is refused."""

import contextlib
import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hardtail
from hardtail import HardtailError, Streams
from tests.test_countdown import GOLD, PUZZLE, assert_cells

# -- reading --------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.integers(1, 99), min_size=4, max_size=4),
    st.lists(st.sampled_from([",", " , ", ", ", " "]), min_size=4, max_size=4),
    st.sampled_from(["", "|", "=", " = ", " |"]),
)
def test_puzzles_are_read_however_they_are_spaced(numbers: list[int], commas: list[str], end: str) -> None:
    task = hardtail.task("countdown")
    target = sum(numbers)
    written = "".join(f"{number}{comma}" for number, comma in zip(numbers, commas, strict=True)) + f"{target}{end}"
    instances = task.parse([written])
    assert task.render(instances) == [",".join(map(str, [*numbers, target]))]
    assert task.check(instances, instances.answer_NA).all()


@settings(deadline=None, max_examples=200)
@given(st.one_of(st.text(max_size=20), st.text("0123456789,| =", max_size=20)))
def test_nothing_that_is_typed_breaks_the_parser(prompt: str) -> None:
    task = hardtail.task("countdown")
    with contextlib.suppress(HardtailError):
        instances = task.parse([prompt])
        assert task.check(instances, instances.answer_NA).all()
    with contextlib.suppress(HardtailError):
        task.read_answer(task.parse([PUZZLE]), 0, prompt)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("86,28,13", "countdown: '86,28,13' has 3 numbers; a puzzle is 4 numbers and a target, e.g. '86,28,13,31,96'"),
        ("", "countdown: '' has 0 numbers; a puzzle is 4 numbers"),
        ("86,,13,31,96", "countdown: a number is missing in '86,,13,31,96'; a puzzle is 4 numbers"),
        ("86,2x,13,31,96", "countdown: '2x' in '86,2x,13,31,96' is not a whole number; a puzzle is 4 numbers"),
        ("86,-2,13,31,96", "countdown: '-2' in '86,-2,13,31,96' is not a whole number"),
        ("86,100,13,31,96", "countdown: the number 100 in '86,100,13,31,96' is out of range; it must be 1 to 99"),
        ("86,0,13,31,96", "countdown: the number 0 in '86,0,13,31,96' is out of range; it must be 1 to 99"),
        ("86,28,13,31,1000", "countdown: the target 1000 in '86,28,13,31,1000' is out of range; it must be 1 to 999"),
        ("1,1,1,1,99", "countdown: '1,1,1,1,99' has no solution: no three steps"),
    ],
)
def test_bad_puzzles_get_a_sentence(prompt: str, message: str) -> None:
    with pytest.raises(HardtailError) as caught:
        hardtail.task("countdown").parse([prompt])
    assert str(caught.value).startswith(message)


def test_bad_answers_and_fields_get_a_sentence() -> None:
    task = hardtail.task("countdown")
    instances = task.parse([PUZZLE])
    with pytest.raises(HardtailError, match="'x' in '86x28' does not belong in a chain"):
        task.read_answer(instances, 0, "86x28")
    with pytest.raises(HardtailError, match="the chain has 41 characters; the answer has room for 40"):
        task.read_answer(instances, 0, "1" * 41)
    with pytest.raises(HardtailError, match="keep_low is 2"):
        hardtail.task("countdown", keep_low=2.0)
    for target in (7, 0):
        with pytest.raises(HardtailError, match=f"held_out has {target}; targets are 10 to 100"):
            hardtail.task("countdown", held_out=(target,))
    for size in (0, -5):
        with pytest.raises(HardtailError, match=f"train_raw is {size}"):
            hardtail.task("countdown", train_raw=size)


@pytest.mark.parametrize("preset", ["release", "paper"])
def test_bare_instances_are_judged_and_drawn_as_full_ones(preset: str) -> None:
    task = hardtail.task("countdown", preset)
    assert len(task.parse([])) == 0
    full = task.sample(3, Streams(1).named("bare"))
    bare = full.bare()
    wrong_NA = full.answer_NA.copy()
    wrong_NA[:, 0] = (wrong_NA[:, 0] + 1) % 10
    for i in range(3):
        assert task.fault(bare, i, full.answer_NA[i]) is None
        assert task.fault(bare, i, wrong_NA[i]) == task.fault(full, i, wrong_NA[i]) is not None
        assert task.picture(bare, i, wrong_NA[i]) == task.picture(full, i, wrong_NA[i])


# -- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cd4.jsonl", "cd4.jsonl.gz"])
def test_cd4_rows_keep_their_own_chain(tmp_path: Path, name: str) -> None:
    other = "28+86=114,114+13=127,127-31=96"
    rows = [
        {"input": PUZZLE, "output": GOLD, "m": 18},
        {"input": PUZZLE, "output": other},
        {"input": "39,22,92,10,89"},
    ]
    content = "\n".join(json.dumps(row) for row in rows).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    task = hardtail.task("countdown")
    instances = task.load(path)
    answers = [task.answer_text(instances, i) for i in range(3)]
    assert answers == [GOLD, other, "39+92=131,22*10=220,220-131=89"]
    assert instances.strata["m"].tolist() == [18, 18, 4]
    first, second, third = ((28, -1), "+", (86, -1), 114), ((114, 0), "+", (13, -1), 127), ((127, 1), "-", (31, -1), 96)
    assert_cells(instances, 1, [first, second, third])
    assert task.check(instances, instances.answer_NA).all()
    assert task.prompts(content.decode().splitlines()) == [PUZZLE, PUZZLE, "39,22,92,10,89"]


def test_plain_lists_load(tmp_path: Path) -> None:
    path = tmp_path / "puzzles.txt"
    path.write_text(f"{PUZZLE}\n39, 22, 92, 10, 89\n")
    task = hardtail.task("countdown")
    assert task.render(task.load(path)) == [PUZZLE, "39,22,92,10,89"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (json.dumps({"input": PUZZLE, "output": "86+28=115"}), "problem 2: countdown: .* equation 1: 86\\+28 is 114"),
        (json.dumps({"input": PUZZLE, "output": "9" * 5000}), "problem 2: countdown: .* it has 5000 characters"),
        (json.dumps({"input": "1,1,1,1,99"}), "problem 2: countdown: '1,1,1,1,99' has no solution"),
        (json.dumps({"input": "1,1,1"}), "problem 2: countdown: '1,1,1' has 3 numbers"),
        (json.dumps({"output": GOLD}), "problem 2: countdown: .* is not a row such as"),
        ('{"input": ', "problem 2: countdown: .* is not a row such as"),
        ('{"input": 5}', "problem 2: countdown: .* is not a row such as"),
    ],
)
def test_bad_rows_are_named_by_their_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "cd4.jsonl"
    path.write_text(json.dumps({"input": PUZZLE, "output": GOLD}) + "\n" + line + "\n")
    with pytest.raises(HardtailError, match=message):
        hardtail.task("countdown").load(path)


VALUES = st.recursive(
    st.one_of(
        st.none(), st.integers(), st.floats(), st.text(max_size=30), st.sampled_from([PUZZLE, GOLD, "1,2,3,4,10"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=4,
)
ROWS = st.one_of(
    st.text(max_size=60),
    st.text(max_size=60).map(lambda tail: "{" + tail),
    st.fixed_dictionaries({}, optional={"input": VALUES, "output": VALUES, "m": VALUES}).map(json.dumps),
)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(ROWS, min_size=1, max_size=3))
def test_no_file_breaks_the_loader(tmp_path: Path, lines: list[str]) -> None:
    task = hardtail.task("countdown")
    path = tmp_path / "rows.jsonl"
    path.write_bytes("\n".join(lines).encode(errors="surrogatepass"))
    with contextlib.suppress(HardtailError):
        task.parse(task.prompts(lines))
    with contextlib.suppress(HardtailError):
        instances = task.load(path)
        assert task.check(instances, instances.answer_NA).all()
