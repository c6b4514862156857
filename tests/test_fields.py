"""Fields of configurations: bounds, types, words that set them, and what every registered class refuses."""

from dataclasses import dataclass, fields, make_dataclass, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import hardtail
from hardtail import HardtailError
from hardtail.core.describe import describe, differences, registered_name, short_name
from hardtail.core.fields import Bounds, Checked, accepted, check_fields, configured, read_fields
from hardtail.core.registry import POLICIES, SCHEMES, TASKS
from hardtail.policies.named import policy_named
from hardtail.tasks.addition.task import MAX_DIGITS, Addition
from hardtail.tasks.maze.task import MAX_SIZE


def test_bounds_from_both_sides() -> None:
    cases = [
        (Bounds(ge=1), (1, 2), (0.5,), "at least 1"),
        (Bounds(gt=1), (1.5,), (1, 0), "above 1"),
        (Bounds(le=1), (1, 0), (1.5,), "at most 1"),
        (Bounds(lt=1), (0.5,), (1, 2), "below 1"),
        (Bounds(ge=0, lt=1 << 63), (0,), (-1, 1 << 63), "at least 0 and below 2^63"),
        (Bounds(ge=1 << 20, le=3 << 30), (1 << 20,), (1,), "at least 1,048,576 and at most 3,221,225,472"),
    ]
    for bounds, inside, outside, words in cases:
        assert all(value in bounds for value in inside), words
        assert not any(value in bounds for value in outside), words
        assert str(bounds) == words


@dataclass(frozen=True)
class Sample:
    needed: int
    share: float | None = None
    sizes: tuple[int, ...] = (1,)
    on: bool = False
    inner: Bounds = Bounds()  # noqa: RUF009


def test_types_that_only_a_checker_imports() -> None:
    """As in a plug-in with `if TYPE_CHECKING: from decimal import Decimal`."""
    late = make_dataclass("Late", [("price", "Decimal", 1), ("bonus", "float", 1.0)], frozen=True)
    assert configured(late, ["bonus=2"], "late") == late(1, 2.0)
    with pytest.raises(HardtailError, match="late: price cannot be written as text; set it in Python"):
        configured(late, ["price=2"], "late")


def test_words_become_fields() -> None:
    words = ["needed=-3", "share=.5", "sizes=1,2", "on=TRUE"]
    assert configured(Sample, words, "it") == Sample(-3, 0.5, (1, 2), True)
    assert configured(Sample, ["needed=1", "share=None"], "it").share is None
    for given, fault in (
        ([], "it: needed has no default; write 'it,needed=VALUE'"),
        (["needed"], "it: 'needed' does not set a field"),
        (["other=1"], "it: 'other=1' does not set a field; write FIELD=VALUE with one of needed, share, sizes, on"),
        (["needed=1", "needed=2"], "it: needed is given twice"),
        (["needed=1.5"], "must be a whole number"),
        (["needed=1", "share=1_0"], "must be a number"),
        (["needed=1", "share=٣"], "must be a number"),
        (["needed=1", "on=yes"], "it must be true or false"),
        (["needed=1", "inner=2"], "a configuration with fields of its own"),
    ):
        with pytest.raises(HardtailError) as refused:
            configured(Sample, given, "it")
        assert fault in str(refused.value)
    assert read_fields(Sample, ["share=-1e3"], "it") == {"share": -1000.0}


@dataclass(frozen=True)
class Numbered(Checked):
    """Ours have words as options."""

    side: Literal[4, 9] | None = 4


def test_options_may_be_numbers() -> None:
    assert configured(Numbered, ["side=9"], "numbered") == Numbered(9)
    assert configured(Numbered, ["side=none"], "numbered") == Numbered(None)
    assert accepted(get_type_hints(Numbered)["side"]) == "4, 9, or none"
    with pytest.raises(HardtailError, match="side is '5'; it must be one of 4, 9"):
        configured(Numbered, ["side=5"], "numbered")


@pytest.mark.parametrize(
    ("name", "field"),
    [("check,then=region", "regions=0/1"), ("hardtail.policies.learned:Planned", "planner=abs")],
)
def test_text_sets_no_field_that_has_no_form_as_text(name: str, field: str) -> None:
    """It went through, and the first step of a decode ended in a stack trace."""
    with pytest.raises(HardtailError, match=f"{field.partition('=')[0]} cannot be written as text; set it in Python"):
        policy_named(f"{name},{field}")


def test_fields_have_their_types() -> None:
    check_fields(Sample(1, share=1), "it")
    for wrong, fault in (
        (Sample("x"), "needed is 'x'; it must be a value of type int"),  # type: ignore[arg-type]
        (Sample(1, share="x"), "share is 'x'; it must be a value of type float"),  # type: ignore[arg-type]
        (Sample(1, on=3), "on is 3; it must be a value of type bool"),  # type: ignore[arg-type]
    ):
        with pytest.raises(HardtailError, match=f"it: {fault}"):
            check_fields(wrong, "it")


def test_configurations_that_differ_say_where() -> None:
    task = describe(Addition(digits=4))
    assert task == {"class": "Addition", "fields": {**task["fields"], "digits": 4}}
    assert short_name("hardtail.any.place:Addition") == "Addition"
    assert short_name("mine.place:Addition") == "mine.place:Addition"
    assert registered_name(task) == "addition"
    assert registered_name({"name": "mine"}) == "mine"
    assert registered_name({"class": "mine:Own"}) == "mine:Own"
    assert registered_name({}) is None
    five = describe(Addition(digits=5))
    assert differences(task, task) == []
    assert differences(task, five) == ["digits"]
    assert differences({"class": "R", "fields": {"task": task}}, {"class": "R", "fields": {"task": five}}) == [
        "task.digits"
    ]
    assert differences(task, {"class": "Maze", "fields": {}}) == ["everything"]
    assert differences({"class": "R", "fields": {"task": task}}, {"class": "R", "fields": {"task": 3}}) == ["task"]
    assert differences({"class": "R", "fields": {"a": 1}}, {"class": "R", "fields": {}}) == ["a"]
    assert differences(1, 2) == ["everything"]
    old = {"name": "addition", "fields": task["fields"]}
    assert differences(task, old) == []
    assert differences({**old, "other": 1}, old) == ["other"]


@pytest.mark.parametrize(
    ("name", "field", "least"),
    [
        ("listops", "train_size", 1),
        ("listops", "test_per_depth", 1),
        ("listops", "max_train_depth", 1),
        ("listops", "expand", 0.0),
        ("addition", "digits", 1),
        ("maze", "size", 2),
        ("maze", "bias", 0.0),
        ("maze", "trailing_pad", 0),
        ("countdown", "keep_low", 0.0),
        ("countdown", "train_raw", 10),
        ("sudoku", "extra_clues", 0),
    ],
)
def test_the_least_value_of_a_field_is_accepted(name: str, field: str, least: Any) -> None:
    assert getattr(hardtail.task(name, **{field: least}), field) == least
    with pytest.raises(HardtailError, match=field):
        hardtail.task(name, **{field: least - 1})


@pytest.mark.parametrize(
    ("name", "field", "most"),
    [
        ("listops", "expand", 1.0),
        ("addition", "digits", MAX_DIGITS),
        ("maze", "size", MAX_SIZE),
        ("maze", "bias", 1.0),
        ("countdown", "keep_low", 1.0),
        ("sudoku", "extra_clues", 40),
    ],
)
def test_the_greatest_value_of_a_field_is_accepted(name: str, field: str, most: Any) -> None:
    assert getattr(hardtail.task(name, **{field: most}), field) == most
    with pytest.raises(HardtailError, match=f"{name}: {field} is .*; it must be at least .* and at most {most:g}"):
        hardtail.task(name, **{field: most + 1})


def plain_fields() -> list[tuple[Any, str]]:
    """Every field of a registered task, scheme or policy that is a number or one of some words."""
    found = []
    for registry in (TASKS, SCHEMES, POLICIES):
        for name in registry.names():
            kind: Any = registry.load(name)
            hints = get_type_hints(kind)
            found += [
                (kind, item.name)
                for item in fields(kind)
                if {int, float} & {hints[item.name], *get_args(hints[item.name])}
                or get_origin(hints[item.name]) is Literal
            ]
    return found


@pytest.mark.parametrize(("kind", "field"), plain_fields(), ids=lambda value: getattr(value, "__name__", value))
def test_a_field_that_is_a_number_or_one_of_some_words_takes_nothing_else(kind: Any, field: str) -> None:
    """Also from Python, where nobody reads the words of a command line."""
    with pytest.raises(HardtailError, match=field):
        replace(kind(), **{field: "no such word"})


@dataclass(frozen=True)
class Whole(Checked):
    number: int = 0


@pytest.mark.parametrize("sign", [1, -1])
def test_whole_numbers_end_below_a_tensors_half(sign: int) -> None:
    assert Whole(sign * ((1 << 62) - 1)).number
    with pytest.raises(HardtailError, match=r"between -2\^62 and 2\^62"):
        Whole(sign * (1 << 62))
