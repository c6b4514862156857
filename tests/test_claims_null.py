"""The null: models that nothing tells apart bear out no claim but those that say just that."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from hardtail.study.claims import Claim, Results, Verdict, claim_named
from hardtail.study.claims.facts import Known, OfModel
from hardtail.study.claims.figures import Profiled, Reached, ShareRight
from hardtail.study.claims.ledger import FILES, source_named
from hardtail.study.claims.ours.figures import Decoded
from hardtail.study.claims.ours.remedy import ADDITION
from hardtail.study.claims.plain import Learns
from hardtail.study.claims.source_file import read_source
from tests.planted_results import MANY, STEPS, Planted, as_printed, gate_of, together
from tests.recorded_claims import RECORDED, recorded_parts


def _null(folder: Path, accuracy: float, *, learned: bool, claims: Sequence[Claim] = RECORDED) -> Results:
    """A model with one accuracy in all strata and orders, and schemes that nothing tells apart, for two seeds."""
    made, failures = Planted(folder), round(MANY * (1 - accuracy))
    cells = [cell for claim in claims for check in claim.checks for cell in check.cells]
    figures = dict.fromkeys(part for cell in cells for part in recorded_parts(cell.figure))
    of_models = [figure for figure in figures if not isinstance(figure, Known)]
    for figure, seed in product(of_models, (42, 43)):
        value = accuracy if isinstance(figure, ShareRight) else STEPS if isinstance(figure, Reached) else 0.0
        described = isinstance(figure, Profiled) and not any("instances" in path for path in (*figure.of, figure.cases))
        made.plant(figure, value, seed=seed, n=failures if described else MANY)
    learn = [check for claim in claims for check in claim.checks if isinstance(check, Learns)]
    for (task, scheme), seed in product({(held.task, held.scheme) for held in [*of_models, *learn]}, (42, 43)):
        made.plant(gate_of(task, scheme), float(learned), seed=seed, n=2 * MANY)
    return Results(made.written())


def _holding(results: Results, claims: Sequence[Claim] = RECORDED) -> set[str]:
    return {claim.id for claim in claims if claim.judge(results).verdict in (Verdict.HOLDS, Verdict.WEAKER)}


ABOUT_NATURAL = {"addition.learned", "addition.natural"}
SAYS_ZERO = {
    "addition.papl5.zero",
    *(f"addition.papl5.{order}.{chain}" for order in ("confidence", "lsb") for chain in (4, 12, 20, 24, 28)),
    *(f"addition.{scheme}.random" for scheme in ("random", "papl", "puma", "papl5")),
}
"""Claims of no accuracy; of the rows in random order, four cells in five are printed as nothing."""
SAYS_PERFECT = {
    "addition.random.confidence",
    "addition.random.lsb",
    *(f"addition.{who}.{k}" for who in ("random.confidence", "random.lsb", "puma.lsb") for k in (4, 12, 20, 24, 28)),
    "maze.random.high",
    "maze.random.confidence",
    "maze.random.dead-end",
    "maze.papl.dead-end",
    "countdown.reveal",
    "countdown.table.reveal",
    "countdown.sequential",
    "listops.random-decode",
}
"""Claims of full accuracy, or of two orders that give the same above the floor."""


def test_the_null_loses(tmp_path: Path) -> None:
    """An untrained model bears out nothing; none of the hard tail right, or all of it, only what says just that."""
    assert _holding(_null(tmp_path / "untrained", 0.0, learned=False)) == set()
    assert _holding(_null(tmp_path / "zero", 0.0, learned=True)) == ABOUT_NATURAL | SAYS_ZERO
    assert _holding(_null(tmp_path / "perfect", 1.0, learned=True)) == ABOUT_NATURAL | SAYS_PERFECT
    assert not SAYS_ZERO & SAYS_PERFECT


def test_the_null_loses_in_facts_about_models(tmp_path: Path) -> None:
    """Weights that are the mean everywhere bear out nothing; nor do the paper's, of a model that has not learned."""
    claims = [claim_named(name) for name in ("addition.papl.starved", "addition.papl.starved.training")]
    of_models = {figure for claim in RECORDED for figure in together(claim, as_printed) if isinstance(figure, OfModel)}
    assert of_models == {figure for claim in claims for figure in together(claim, as_printed)}
    for claim, even, learned in product(claims, (True, False), (True, False)):
        made = Planted(tmp_path / f"{claim.id}-{even}-{learned}")
        for figure, value in together(claim, as_printed).items():
            made.plant(figure, 1.0 if even else value)
        for fact in made.facts:
            fact |= {"value": float(learned)} if fact["fact"].endswith(".natural") else {}
        for run in made.runs:
            made.gate(run, float(learned))
        judged = claim.judge(Results(made.written()))
        assert (judged.verdict in (Verdict.HOLDS, Verdict.WEAKER)) == (learned and not even), claim.id
        assert bool(judged.left_out) is not learned


LEARNED_ELSEWHERE = {"papl.default.addition"}
"""Claims that every seed learns."""


@pytest.mark.parametrize(
    ("accuracy", "learned", "holding"),
    [
        (0.0, False, set()),
        (0.0, True, LEARNED_ELSEWHERE),
        (1.0, True, LEARNED_ELSEWHERE | {"puma.as-good.addition", "ar.sudoku"}),
    ],
    ids=["untrained", "zero", "perfect"],
)
def test_the_null_loses_in_other_peoples_claims(
    accuracy: float, learned: bool, holding: set[str], tmp_path: Path
) -> None:
    claims = [claim for path in FILES.glob("*.toml") for claim in read_source(path).claims()]
    assert _holding(_null(tmp_path, accuracy, learned=learned, claims=claims), claims) == holding


OWN = source_named("ours").claims()
AS_GOOD = {f"remedy.repair.{model}" for model in ADDITION}
"""Claims that one decoder is no worse than another, in at most 33 passes."""


@pytest.mark.parametrize(
    ("accuracy", "learned", "holding"),
    [(0.0, False, set()), (1.0, False, set()), (0.0, True, set()), (1.0, True, AS_GOOD)],
    ids=["untrained", "unlearned", "zero", "perfect"],
)
def test_the_null_loses_in_our_own_claims(accuracy: float, learned: bool, holding: set[str], tmp_path: Path) -> None:
    """All decoders are equally good and take the passes of one cell a step, and no score tells anything."""
    made, value = Planted(tmp_path), {"exact_match": accuracy, "passes": 33.0, "auroc": 0.5}
    for figure in {cell.figure for claim in OWN for check in claim.checks for cell in check.cells}:
        assert isinstance(figure, Decoded | ShareRight)
        made.plant(figure, value[figure.metric])
    for run in made.runs:
        made.gate(run, float(learned))
    results = Results(made.written())
    assert _holding(results, OWN) == holding
    assert learned or all(claim.judge(results).left_out for claim in OWN)
