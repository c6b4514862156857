"""Section 3 of the paper on denoisers built by hand: the diagnosis must find what was planted, and nothing else.

Shapes: N instances, A answer cells.
"""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.records import as_json
from hardtail.core.seeds import Stream
from hardtail.core.types import Instances, Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.diagnosis import diagnose, tables
from hardtail.measuring.diagnosis.cross import Cross, cross
from hardtail.measuring.diagnosis.readiness import Agreement
from hardtail.policies.base import Commit, Policy
from hardtail.policies.confidence import Entropy, Margin, RandomOrder, Top1
from hardtail.policies.orders import LeftToRight, Logical, RightToLeft
from hardtail.tasks.addition.commits import chain_cells, wrong_commits
from hardtail.tasks.addition.profile import Profile, Summary, chain_bins
from hardtail.tasks.addition.solver import ROLES
from hardtail.tasks.addition.task import Addition
from tests.planted import GUESS, adder, lookahead

TASK = Addition()
WINDOW = 6
LSB = Logical("lsb")


@cache
def sums() -> Instances:
    """Natural sums, and chains on both sides of the window."""
    strata = {"natural": 60, **{f"chain>={k}": 40 for k in (4, WINDOW, WINDOW + 1, 12, 20, 28, 32)}}
    return Instances.concat([TASK.sample(n, Stream("sums").child(name), name) for name, n in strata.items()])


@cache
def decoded(policy: Policy) -> Trace:
    return decode(lookahead(TASK, WINDOW), sums(), policy)


def runs_below(instances: Instances) -> NDArray[np.int64]:
    """The length of the run of p cells directly below every cell."""
    propagates_NA = np.isin(instances.extras["role_NA"], [ROLES.index(role) for role in ROLES if role.startswith("p")])
    run_NA = np.zeros(propagates_NA.shape, dtype=np.int64)
    for cell in range(propagates_NA.shape[1] - 2, -1, -1):
        run_NA[:, cell] = np.where(propagates_NA[:, cell + 1], run_NA[:, cell + 1] + 1, 0)
    return run_NA


def trapped(instances: Instances) -> NDArray[np.bool_]:
    """The cells where "carry-in equals my own carry-out" is asked for, and false."""
    role_NA, carry_NA = instances.extras["role_NA"], instances.extras["carry_in_NA"]
    false_NA = np.where(role_NA == ROLES.index("g"), ~carry_NA, (role_NA == ROLES.index("k")) & carry_NA)
    return false_NA & (runs_below(instances) > WINDOW)


@pytest.mark.parametrize(
    "policy", [Top1(), Margin(), Entropy(), RandomOrder(), LeftToRight(), RightToLeft(), LSB], ids=str
)
def test_who_knows_addition_needs_no_order(policy: Policy) -> None:
    trace = decode(adder(TASK), sums(), policy)
    assert trace.exact_N.all()
    found = TASK.profile(trace)
    assert isinstance(found, Profile)
    assert found.failures == 0
    assert found.wrong_commits.lowest_index.at_chain_msb is None


def test_the_shortcut_fails_on_long_chains_where_the_guess_is_false_and_nowhere_else() -> None:
    trace, instances = decoded(Top1()), sums()
    assert ((trace.answer_NA != instances.answer_NA) == trapped(instances)).all()
    chain_N = instances.strata["chain"]
    assert trace.exact_N[chain_N <= WINDOW].all()
    # Long chains with g or k above them fail about half the time; those up to the carry-out never.
    long_N = (chain_N > WINDOW) & (instances.extras["chain_msb_N"] > 0)
    assert 0.3 < 1 - trace.exact_N[long_N].mean() < 0.7


def test_the_logical_order_rescues_it() -> None:
    assert decoded(LSB).exact_N.all()
    assert decoded(RightToLeft()).exact_N.all()


@pytest.mark.parametrize("reading", ["lowest_index", "first_in_time"])
def test_the_wrong_commit_profile_of_the_paper(reading: str) -> None:
    trace = decoded(Top1())
    found = Summary.of(getattr(wrong_commits(TASK, trace), reading))
    assert found.failures == (~trace.exact_N).sum() > 50
    assert found.at_chain_msb == 1.0
    assert found.plus_one_at_g == found.minus_one_at_k == 1.0
    roles = found.roles
    assert roles["g"].plus_one == roles["g"].failures > 10
    assert roles["k"].minus_one == roles["k"].failures > 10
    assert roles["g"].failures + roles["k"].failures == found.failures
    assert found.inside_chain == 0.0
    assert found.nine_inside_chain is None
    assert found.confidence_mean == pytest.approx(GUESS, abs=1e-5)
    assert found.gold_second == 1.0
    assert found.premature == 1.0
    assert found.chain_masked_median == found.chain_masked_mean == 1.0
    # 32 digits less a chain of 28 and the guess itself: three easy digits go first, as in the paper's step 3.
    assert found.long_failures > 5
    assert found.long_step_median == 3.0


def test_the_cross_table_and_its_bins() -> None:
    confidence, lsb = decoded(Top1()), decoded(LSB)
    table = cross(confidence, lsb, chain_bins(sums().strata["chain"]))
    failures = int((~confidence.exact_N).sum())
    assert table["all"] == Cross(len(confidence), len(confidence) - failures, 0, failures, 0)
    assert cross(lsb, confidence)["all"].only_first == failures
    assert sum(row.only_second for name, row in table.items() if name != "all") == failures
    assert sum(row.instances for name, row in table.items() if name != "all") == len(confidence)
    with pytest.raises(HardtailError, match="different instances"):
        cross(confidence, lsb.take(slice(10, None)))


def test_premature_commits_cost_just_what_was_planted() -> None:
    trace, instances = decoded(Top1()), sums()
    found = diagnose(TASK, trace).readiness
    asked_NA = np.isin(instances.extras["role_NA"], [0, 1]) & (runs_below(instances) > WINDOW)
    unready = found.accuracy["unready"]
    assert unready.commits - unready.right == trapped(instances).sum()
    assert found.accuracy["ready"].accuracy == found.accuracy["free"].accuracy == 1.0
    # Cells that the window sees through may be committed early as well, and rightly: they are in another bin.
    (guesses,) = (found_bin for found_bin in found.calibration["unready"].bins if found_bin.low == 0.99)
    assert guesses.commits == asked_NA.sum() < found.premature
    assert guesses.confidence == pytest.approx(GUESS, abs=1e-5)
    assert guesses.accuracy == pytest.approx(1 - trapped(instances).sum() / asked_NA.sum())
    ece = found.calibration["free"].ece
    assert ece is not None
    assert ece < 0.02
    ordered = diagnose(TASK, decoded(LSB)).readiness
    assert ordered.premature == 0
    assert ordered.agreement["lsb"].tau_b == pytest.approx(1.0)
    assert ordered.early["parents"] == replace(ordered.early["ancestors"], commits=0, share=0.0)


def test_first_in_time_is_not_always_the_most_significant() -> None:
    """Two chains, both guesses false: the readings must part where a policy reaches the lower one first."""
    task = Addition(digits=32, planting="minimum")
    #   k ppppppp g kk … : carries 1 into k; then the same again below
    a, b = (
        "1" + "9" * 7 + "5" + "1" * 6 + "1" + "9" * 7 + "5" + "1" * 8,
        "1" + "0" * 7 + "5" + "1" * 6 + "1" + "0" * 7 + "5" + "1" * 8,
    )
    instances = task.parse([f"{a}+{b}"])
    trace = decode(lookahead(task, WINDOW), instances, Top1())
    wrong = np.flatnonzero(trace.answer_NA[0] != instances.answer_NA[0])
    assert len(wrong) == 2
    swapped = replace(trace, **_swapped(trace, *wrong))
    found = wrong_commits(task, swapped)
    assert found.lowest_index.cell_K.tolist() == [wrong[0]]
    assert found.first_in_time.cell_K.tolist() == [wrong[1]]
    assert found.first_in_time.step_K[0] < found.lowest_index.step_K[0]
    assert wrong_commits(task, trace).first_in_time.cell_K.tolist() == [wrong[0]]


def _swapped(trace: Trace, one: int, other: int) -> dict[str, Any]:
    """The events of two cells in each other's place in time."""
    at, to = (int(np.flatnonzero(trace.cell_NT[0] == cell)[0]) for cell in (one, other))
    changed = {}
    for name in ("cell_NT", "token_NT", "prob_NT", "gold_prob_NT", "gold_rank_NT"):
        array = getattr(trace, name).copy()
        array[0, [at, to]] = array[0, [to, at]]
        changed[name] = array
    return changed


def test_a_carry_flipped_inside_a_chain_is_nine_and_late() -> None:
    """What the paper says of PAPL: off by nine at interior p cells, when most of the chain is known."""
    trace = decode(adder(TASK), TASK.sample(20, Stream("nine"), "chain=20"), LSB)
    instances = trace.instances
    chain_NA = chain_cells(TASK, instances)
    top_N = chain_NA.argmax(axis=1)
    row_N = np.arange(len(trace))
    event_N = (trace.cell_NT == top_N[:, None]).argmax(axis=1)
    token_NT, answer_NA = trace.token_NT.copy(), trace.answer_NA.copy()
    token_NT[row_N, event_N] = answer_NA[row_N, top_N] = 9 - instances.answer_NA[row_N, top_N]
    found = Summary.of(wrong_commits(TASK, replace(trace, token_NT=token_NT, answer_NA=answer_NA)).lowest_index)
    assert found.failures == 20
    assert found.inside_chain == found.nine_inside_chain == 1.0
    assert found.at_chain_msb == found.premature == 0.0
    assert found.chain_masked_median == pytest.approx(1 / 20)
    assert found.plus_one_at_g is None
    assert found.gold_second == 0.0  # it was first: another token was written
    p = found.roles["p_above_p"]
    assert p.plus_nine + p.minus_nine == p.failures == 20
    flipped = wrong_commits(TASK, replace(trace, token_NT=token_NT, answer_NA=answer_NA)).lowest_index
    assert (flipped.sign_K == -np.sign(flipped.difference_K)).all()


def test_a_token_that_is_no_digit_has_no_direction() -> None:
    trace = decode(adder(TASK), sums().take(slice(0, 5)), LSB)
    token_NT, answer_NA = trace.token_NT.copy(), trace.answer_NA.copy()
    token_NT[2, -1] = answer_NA[2, 0] = TASK.vocabulary.id("+")
    wrong = wrong_commits(TASK, replace(trace, token_NT=token_NT, answer_NA=answer_NA)).first_in_time
    assert len(wrong) == 1
    line = wrong.example(0)
    assert (line.instance, line.role, line.step) == (2, "carry_out", 32)
    assert line.difference is line.sign is None
    assert Summary.of(wrong).no_digit == Summary.of(wrong).roles["carry_out"].other == 1


def test_the_modulo_reading_has_no_cell_above_a_chain_at_the_top() -> None:
    task = Addition(digits=6, sum="modulo")
    instances = task.parse(["450000+549999", "045000+954999"])
    assert chain_cells(task, instances).sum(axis=1).tolist() == [6, 6]
    instances = task.parse(["450001+540009"])
    assert np.flatnonzero(chain_cells(task, instances)[0]).tolist() == [1, 2]


def test_many_cells_a_step_do_not_see_each_other() -> None:
    """All cells at once: every guess is made blind, inside chains as well."""
    trace = decode(lookahead(TASK, WINDOW), sums(), Top1(), Decoding(Commit(steps=1)))
    found = diagnose(TASK, trace)
    read = found.readiness
    assert read.premature == read.dependent == (sums().parents_NAE[..., 0] >= 0).sum()  # type: ignore[index]
    assert read.early["parents"].steps_until_last_mean == 0.0
    assert read.early["parents"].missing_fraction_mean == 1.0
    assert read.agreement["lsb"] == Agreement(None, None, 0)
    assert isinstance(found.profile, Profile)
    assert found.profile.wrong_commits.lowest_index.step_median == 0.0


def test_the_diagnosis_is_json_and_tables() -> None:
    found = diagnose(TASK, decoded(Top1()))
    json.dumps(as_json(found), allow_nan=False)
    printed = {table.title: table.markdown() for table in tables(found)}
    assert "|  | first_in_time | lowest_index |" in printed["addition: wrong commits"]
    assert "| gold second | 1 | 1 |" in printed["addition: wrong commits"]
    assert "| >=32 | 40 |" in printed["addition: by chain: lowest index"]


def test_bare_instances_are_refused_in_a_sentence() -> None:
    bare = replace(decoded(Top1()), instances=sums().bare())
    with pytest.raises(HardtailError, match="bare"):
        diagnose(TASK, bare)
    with pytest.raises(HardtailError, match="bare"):
        TASK.profile(bare)
