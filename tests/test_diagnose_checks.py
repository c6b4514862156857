"""What became of commits that were looked at again, against a plain count."""

from dataclasses import asdict

import numpy as np
import pytest

import hardtail
from hardtail import Streams
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.measuring.diagnosis import diagnose, tables, verdict
from hardtail.measuring.diagnosis.checks import checks
from hardtail.models.denoiser import Function
from hardtail.policies.base import Policy
from hardtail.policies.check import Check
from hardtail.policies.confidence import Top1
from hardtail.policies.remask import P2
from tests.decoding_toys import MASK, TOY, hashed_logits, problems


def counted(trace: Trace) -> dict[str, float | None]:
    """One event after another."""
    counts = dict.fromkeys(("wrong_repaired", "wrong_changed", "wrong_kept", "right_kept", "right_spoiled"), 0)
    probs: list[float] = []
    vouched: list[bool] = []
    for i in range(len(trace)):
        token: dict[int, int] = {}
        kept: dict[int, bool] = {}
        gold = trace.instances.answer_NA[i].tolist()
        for event in np.flatnonzero(trace.commit_NT[i]):
            cell, new = int(trace.cell_NT[i, event]), int(trace.token_NT[i, event])
            if not trace.instances.scored_NA[i, cell]:
                continue
            if (old := token.get(cell)) is not None:
                kept[cell] = new == old
                was = "right" if old == gold[cell] else "wrong"
                now = (
                    "kept"
                    if new == old
                    else "spoiled"
                    if was == "right"
                    else "repaired"
                    if new == gold[cell]
                    else "changed"
                )
                counts[f"{was}_{now}"] += 1
                if (was, now) == ("wrong", "kept"):
                    probs.append(float(trace.prob_NT[i, event]))
            token[cell] = new
        wrong = [cell for cell in token if trace.answer_NA[i, cell] != gold[cell]]
        if wrong:
            vouched.append(all(kept.get(cell, False) for cell in wrong))
    wrong_all = counts["wrong_repaired"] + counts["wrong_changed"] + counts["wrong_kept"]
    right_all = counts["right_kept"] + counts["right_spoiled"]
    shares = {
        "caught": 1 - counts["wrong_kept"] / wrong_all,
        "spoiled": counts["right_spoiled"] / right_all,
        "kept_prob": float(np.mean(probs)),
        "failures_vouched": float(np.mean(vouched)),
    }
    return {**counts, **shares}


@pytest.mark.parametrize(
    "policy",
    [
        Check(rounds=3),
        Check(parts=2, then="refill", rounds=2),
        Check(hide="none", rounds=3),
        Check(hide="none", then="refill", rounds=3),
        P2(eta=3.0),
    ],
    ids=str,
)
def test_commits_that_were_looked_at_again(policy: Policy) -> None:
    instances = problems(80)
    trace = decode(TOY, instances, policy)
    found = checks(trace)
    assert found is not None
    assert asdict(found) == pytest.approx(counted(trace))
    assert min(found.wrong_kept, found.wrong_changed, found.wrong_repaired, found.right_kept, found.right_spoiled) > 0


def test_a_decode_that_writes_once_has_none() -> None:
    assert checks(decode(TOY, problems(20), Top1())) is None


def test_a_diagnosis_shows_them() -> None:
    task = hardtail.task("addition", digits=4)
    instances = task.sample(20, Streams(0).named("checks"))
    mask, size = task.vocabulary.mask_id, task.vocabulary.size
    guessing = Function(lambda tokens_BL, at_BA: hashed_logits(tokens_BL, at_BA).repeat(1, 1, 2)[..., :size], mask)
    diagnosis = diagnose(task, decode(guessing, instances, Check(rounds=1)))
    assert diagnosis.checks is not None
    assert diagnosis.checks.wrong_changed > 0
    assert any(table.title == "commits that were looked at again" for table in tables(diagnosis))
    held = diagnosis.checks
    said = f"Of the digits looked at again, {held.wrong_repaired + held.wrong_changed} wrong ones were changed"
    assert f"{said} and {held.wrong_kept} stayed wrong; " in verdict([diagnosis], task.words).text(1000)
    assert mask != MASK
