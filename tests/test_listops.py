"""ListOps against a recursive evaluator, and the study's figures."""

import contextlib
import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardtail
from hardtail import HardtailError, Instances, Streams
from hardtail.tasks.listops.solver import KINDS

NAMES = {"X": "max", "N": "min", "D": "median", "S": "sum"}


@dataclass(frozen=True)
class Node:
    """One line of a trace, as recursion finds it."""

    operator: str
    value: int
    depth: int
    rank: int
    children: list[int]


def evaluate(expression: str, median: str) -> list[Node]:
    """The trace of an expression with single spaces, by recursion over its tokens."""
    words = re.findall(r"[][XNDS]|\d", expression)
    trace: list[Node] = []

    def operation(at: int, depth: int) -> tuple[int, int]:
        operator, values, children = words[at + 1], [], []
        at += 2
        while words[at] != "]":
            if words[at] == "[":
                at, cell = operation(at, depth + 1)
                children.append(cell)
                values.append(trace[cell].value)
            else:
                values.append(int(words[at]))
                at += 1
        values.sort()
        half = len(values) // 2
        upper = values[half]
        lower = upper if len(values) % 2 else values[half - 1]
        middle = upper if median == "upper" else int((lower + upper) / 2)
        value = {"X": values[-1], "N": values[0], "D": middle, "S": sum(values) % 10}[operator]
        rank = max((trace[cell].rank + 1 for cell in children), default=0)
        trace.append(Node(operator, value, depth, rank, children))
        return at + 1, len(trace) - 1

    operation(0, 1)
    return trace


def assert_annotated(instances: Instances, i: int, expression: str, median: str) -> None:
    trace = evaluate(expression, median)
    after = 20 - len(trace)
    characters = "0123456789XNDS[] =$abcdefghijklmnop"
    answer = "".join(characters[token] for token in instances.answer_NA[i])
    assert answer == ("".join(str(node.value) for node in trace) + "$abcdefghijklmnopabcd")[:20]
    assert instances.strata["nodes"][i] == len(trace)
    assert instances.strata["depth"][i] == max(node.depth for node in trace)
    assert instances.orders["post_order"][i].tolist() == [node.rank for node in trace] + [20] * after
    assert instances.extras["node_depth_NA"][i].tolist() == [node.depth for node in trace] + [-1] * after
    kinds = [KINDS[kind] for kind in instances.extras["kind_NA"][i]]
    assert kinds == ([NAMES[node.operator] for node in trace] + ["eos"] + ["padding"] * 20)[:20]
    assert instances.parents_NAE is not None
    got = [row[row >= 0].tolist() for row in instances.parents_NAE[i]]
    assert got == [node.children for node in trace] + [[]] * after


def expressions(depth: int = 4) -> st.SearchStrategy[str]:
    """Expressions that people may write: one to five arguments, any shape."""
    operator = st.sampled_from("XNDS")
    digits = st.sampled_from("0123456789")

    def join(parts: tuple[str, list[str]]) -> str:
        return f"[{parts[0]} {' '.join(parts[1])}]"

    nested = st.tuples(operator, st.lists(digits, min_size=1, max_size=5)).map(join)
    for _ in range(depth - 1):
        nested = st.tuples(operator, st.lists(st.one_of(digits, nested), min_size=1, max_size=4)).map(join)
    return nested.filter(lambda text: text.count("[") <= 20 and len(text) <= 178)


@pytest.mark.parametrize("preset", ["release", "paper"])
@pytest.mark.parametrize("median", ["upper", "truncated_mean"])
def test_sampled_trees_against_recursion(preset: str, median: str) -> None:
    task = hardtail.task("listops", preset, median=median)
    for stratum in task.strata():
        instances = task.sample(60, Streams(1).named("trees"), stratum)
        for i, expression in enumerate(task.render(instances)):
            assert_annotated(instances, i, expression, median)


@settings(deadline=None, max_examples=150)
@given(expressions(), st.sampled_from(["upper", "truncated_mean"]), st.booleans())
def test_given_trees_against_recursion(expression: str, median: str, compact: bool) -> None:
    task = hardtail.task("listops", median=median)
    instances = task.parse([expression.replace(" ", "") + "=" if compact else f"  {expression} "])
    assert task.render(instances) == [expression]
    assert_annotated(instances, 0, expression, median)


@settings(deadline=None, max_examples=200)
@given(st.one_of(st.text(max_size=30), st.text("[]XNDS 0123456789=", max_size=30), expressions().map(lambda t: t[:-1])))
def test_nothing_that_is_typed_breaks_the_parser(prompt: str) -> None:
    task = hardtail.task("listops")
    with contextlib.suppress(HardtailError):
        instances = task.parse([prompt])
        assert_annotated(instances, 0, task.render(instances)[0], "upper")
    with contextlib.suppress(HardtailError):
        task.read_answer(task.parse(["[X 3 [N 2 5] 7]"]), 0, prompt)


def test_layout_of_the_two_readings() -> None:
    release, paper = hardtail.task("listops"), hardtail.task("listops", "paper")
    instances = release.parse(["[X 3 [N 2 5] 7]"])
    tail = "27$abcdefghijklmnopa"
    row = release.vocabulary.decode(instances.tokens_NL[0])
    assert row == "[X 3 [N 2 5] 7]=" + tail + "#" * 164
    assert paper.vocabulary.decode(paper.parse(["[X3[N25]7]"]).tokens_NL[0]).startswith("[X 3 [N 2 5] 7] =" + tail)
    assert release.vocabulary.size == paper.vocabulary.size == 37
    assert instances.scored_NA.sum() == 2
    assert paper.parse(["[X 3 [N 2 5] 7]"]).scored_NA.sum() == 20


def test_widest_and_fullest_expressions_fit() -> None:
    task = hardtail.task("listops")
    wide = "[S " + " ".join(["[N 1]"] * 19) + "]"
    chain = "[X " * 20 + "4" + "]" * 20
    instances = task.parse([wide, chain])
    for i, expression in enumerate((wide, chain)):
        assert_annotated(instances, i, expression, "upper")
    assert [task.answer_text(instances, i) for i in (0, 1)] == ["1" * 19 + "9", "4" * 20]  # no end mark


# -- the study's figures ----------------------------------------------------------------------------------------------


def test_depth_shares_and_trace_lengths_of_natural_trees() -> None:
    strata = hardtail.task("listops").sample(20_000, Streams(1).named("shares")).strata
    depth_N, nodes_N = strata["depth"], strata["nodes"]
    share = np.bincount(depth_N, minlength=6)[1:] / depth_N.size
    np.testing.assert_allclose(share, [0.520, 0.261, 0.131, 0.057, 0.031], atol=0.012)
    mean = [nodes_N[depth_N == depth].mean() for depth in range(1, 6)]
    np.testing.assert_allclose(mean, [1, 2.9, 6.4, 10.9, 12.7], atol=0.3)


def test_ratio_law_keeps_the_depth_until_a_tree_fits() -> None:
    depth_N = hardtail.task("listops", "paper").sample(20_000, Streams(1).named("shares")).strata["depth"]
    share = np.bincount(depth_N, minlength=7)[1:] / depth_N.size
    np.testing.assert_allclose(share, np.array([16, 8, 4, 2, 1, 0]) / 31, atol=0.012)


def test_trees_keep_to_the_sampler_s_rules() -> None:
    task = hardtail.task("listops", "paper")
    for depth in range(1, 7):
        instances = task.sample(300, Streams(1).named("rules"), f"depth={depth}")
        assert (instances.strata["depth"] == depth).all()
        counts = {len(node.replace("…", "[").split()) - 1 for text in task.render(instances) for node in _flat(text)}
        assert counts == {2, 3, 4}
    above = task.sample(300, Streams(1).named("rules"), "depth>=5").strata["depth"]
    assert set(above.tolist()) == {5, 6}


def _flat(expression: str) -> list[str]:
    """Every operation with its sub-expressions as one word each."""
    found = []
    while match := re.search(r"\[([^][]*)\]", expression):
        found.append(match[1])
        expression = expression.replace(match[0], "…", 1)
    return found


def test_sets_of_the_two_readings() -> None:
    release, paper = hardtail.task("listops").splits(), hardtail.task("listops", "paper").splits()
    assert [part.n for part in release["train"]] == [200_000]
    assert [part.n for part in release["test"]] == [500] * 5
    assert [part.n for part in paper["train"]] == [20_000]
    assert [part.n for part in paper["test"]] == [1000] * 6
    assert [part.n for part in release["probe"]] == [part.n for part in paper["probe"]] == [1000] * 5


# -- judging and people -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["release", "paper"])
def test_the_trace_alone_decides(preset: str) -> None:
    task = hardtail.task("listops", preset)
    instances = task.parse(["[X 3 [N 2 5] 7]"])
    gold_A = instances.answer_NA[0]
    inner, padding = gold_A.copy(), gold_A.copy()
    inner[0] = task.vocabulary.id("3")
    padding[7] = task.vocabulary.id("3")
    assert task.check(instances, np.array([inner])).tolist() == [False]
    assert task.fault(instances, 0, inner) == "[N 2 5] is 2, not 3"
    assert task.check(instances, np.array([padding])).tolist() == [True]
    assert task.fault(instances, 0, padding) is None
    outer = gold_A.copy()
    outer[1] = task.vocabulary.id("$")
    assert task.fault(instances, 0, outer) == "[X 3 [N 2 5] 7] is 7, not '$'"


def test_picture_draws_the_tree_and_marks_wrong_values() -> None:
    task = hardtail.task("listops")
    instances = task.parse(["[X 3 [N 2 [S 9 9]] 7]"])
    picture = task.picture(instances, 0, task.read_answer(instances, 0, "837"))
    assert picture.plain.splitlines() == [
        "[X 3 [N 2 [S 9 9]] 7]",
        "  [X 3 […] 7] = 7",
        "    [N 2 […]] = 3",
        "      [S 9 9] = 8",
    ]
    red = [picture.plain[span.start : span.end] for span in picture.spans if "red" in str(span.style)]
    assert red == ["3"]


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("[X 3 [N 2 5] 7", "the bracket that opens at character 1 of '[X 3 [N 2 5] 7' is never closed"),
        ("[X 3 [N 2 5", "the bracket that opens at character 6 of '[X 3 [N 2 5' is never closed"),
        ("[X 3]]", "']', character 6 of '[X 3]]', closes no bracket"),
        ("[X 3] [N 4]", "'[', character 7 of '[X 3] [N 4]', follows an expression that is complete"),
        ("[Q 3 4]", "'Q', character 2 of '[Q 3 4]', is not an operator; the operators are X (maximum), N (minimum)"),
        ("[3 4]", "'3', character 2 of '[3 4]', is not an operator"),
        ("[X 1 [N]]", "'[N]', character 8 of '[X 1 [N]]', has no arguments; write at least one"),
        ("[X 12 3]", "12, character 4 of '[X 12 3]', is above 9; arguments are single digits"),
        ("[X 3 N 4]", "'N', character 6 of '[X 3 N 4]', is neither a digit nor a bracket"),
        ("7", "'7' is not an expression; write one in brackets, e.g. '[X 3 [N 2 5] 7]'"),
        (
            "[X" + "[N1]" * 20 + "]",
            f"'[X{'[N1]' * 19}[N'… (83 characters) has 21 operators; the answer has room for 20",
        ),
        (
            "[X" + "1" * 90 + "]",
            f"'[X{'1' * 78}'… (93 characters) has 183 characters with single spaces; there is room for 179",
        ),
    ],
)
def test_bad_expressions_get_a_sentence(prompt: str, message: str) -> None:
    with pytest.raises(HardtailError) as caught:
        hardtail.task("listops").parse([prompt])
    assert str(caught.value).startswith(f"listops: {message}")


def test_other_bad_input_gets_a_sentence() -> None:
    task = hardtail.task("listops")
    instances = task.parse(["[X 3 [N 2 5] 7]"])
    with pytest.raises(
        HardtailError, match="'7' is not an answer to this expression; write one digit for each of its 2"
    ):
        task.read_answer(instances, 0, "7")
    with pytest.raises(HardtailError, match="no depth fits depth=6; depths are 1 to 5"):
        task.sample(1, Streams(1).named("deep"), "depth=6")
    with pytest.raises(HardtailError, match="no tree for depth=3 with at most 20 operators"):
        hardtail.task("listops", arguments=(4,), expand=1.0).sample(1, Streams(1).named("full"), "depth=3")
    bad_fields = ({"max_train_depth": 7}, {"arguments": ()}, {"expand": 1.5}, {"train_size": 0}, {"test_per_depth": -1})
    for fields in bad_fields:
        with pytest.raises(HardtailError, match=f"listops: {next(iter(fields))} is"):
            hardtail.task("listops", **fields)


@pytest.mark.parametrize("preset", ["release", "paper"])
def test_bare_instances_are_judged_and_drawn_as_full_ones(preset: str) -> None:
    task = hardtail.task("listops", preset)
    assert len(task.parse([])) == 0
    full = task.sample(3, Streams(1).named("bare"), "depth=3")
    bare = full.bare()
    wrong_NA = full.answer_NA.copy()
    wrong_NA[:, 1] = (wrong_NA[:, 1] + 1) % 10
    for i in range(3):
        assert task.fault(bare, i, full.answer_NA[i]) is None
        assert task.fault(bare, i, wrong_NA[i]) == task.fault(full, i, wrong_NA[i]) is not None
        assert task.picture(bare, i, wrong_NA[i]) == task.picture(full, i, wrong_NA[i])
        assert (task.read_answer(bare, i, task.answer_text(bare, i)) == full.answer_NA[i]).all()
