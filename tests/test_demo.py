"""The main job: what it prints is what was decoded, beside what the paper prints."""

import re
from pathlib import Path

import pytest
import torch

from hardtail import zoo
from hardtail.cli import main
from hardtail.decoding.loop import decode
from hardtail.measuring.evaluate import measured_instances
from hardtail.models.denoiser import Function
from hardtail.policies.named import policy_named
from hardtail.show import demo
from hardtail.tasks.addition.task import Addition
from tests.planted import adder, lookahead

STRATA = ("natural", "chain>=28")


MODELS = [model for model in zoo.models() if model.task == "addition"]


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SUMS", 3)
    monkeypatch.setattr(demo, "STRATA", STRATA)


@pytest.fixture(scope="module")
def shown() -> list[demo.Shown]:
    """All that the demonstration decodes, on three sums each."""
    done: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "SUMS", 3)
        patch.setattr(demo, "STRATA", STRATA)
        found = demo.decode_all(done.append)
        assert sum(done) == demo.decodes() == len(MODELS) * 2 * 2 * 3
    return found


def test_every_shipped_addition_model_is_shown_beside_the_paper(shown: list[demo.Shown]) -> None:
    rows = {(row[0], row[1]): row for row in demo.table(shown).rows}
    assert [name for name, _ in rows] == [model.name for model in MODELS for _ in range(2)]
    for model in MODELS:
        for stratum in STRATA:
            (right,) = (
                item.trace.exact_N.mean()
                for item in shown
                if (item.model, item.stratum, item.policy) == (model.name, stratum, "lsb")
            )
            assert str(rows[model.name, stratum][4]).startswith(f"{right:.2f} [")
    assert rows["addition-puma", "chain>=28"][3] == 0.908
    assert rows["addition-papl", "chain>=28"][5] == 0.03
    assert rows["addition-random", "natural"][3] == "≥ 0.999"
    assert rows["addition-papl5", "natural"][3] is None, "the paper prints no natural accuracy of it"


def test_what_is_recorded_on_more_sums_is_said_where_it_differs() -> None:
    task, recorded = Addition(), zoo.models()[0].accuracy["chain>=28"]["top1"]
    trace = decode(adder(task), measured_instances(task, "chain>=28", 60, 1), policy_named("top1"))
    all_right = demo.Shown("addition-random", "chain>=28", "top1", trace)
    assert demo.compared_with_records([all_right]).endswith(
        f"outside the intervals above: addition-random {recorded} on chain>=28 under confidence."
    )
    few = demo.Shown("addition-random", "chain>=28", "top1", trace.take(slice(3)))
    unlisted = demo.Shown("addition-random", "chain>=12", "top1", trace)
    assert demo.compared_with_records([few, unlisted]).endswith("all within the intervals above.")


def test_a_committed_sign_is_named_as_one() -> None:
    task = Addition()
    sums = measured_instances(task, "chain>=28", 3, 1)
    plus = torch.nn.functional.one_hot(torch.tensor(task.vocabulary.id("+")), task.vocabulary.size).float()
    always = Function(lambda tokens_BL, at_BA: 9 * plus.expand(*at_BA.shape, -1), task.vocabulary.mask_id)
    shown = demo.Shown("addition-random", "chain>=28", "top1", decode(always, sums, policy_named("top1")))
    found = demo.typical_failure([shown])
    assert found is not None
    assert "it wrote '+', which is not a digit, in a cell of role" in found[0]


def test_the_typical_failure_is_named_and_drawn() -> None:
    """A planted shortcut is seen for what it is; who makes no mistake has none."""
    task = Addition()
    sums = measured_instances(task, "chain>=28", 60, 1)

    def made(denoiser: object, policy: str = "top1") -> list[demo.Shown]:
        trace = decode(denoiser, sums, policy_named(policy, task.order_names))  # type: ignore[arg-type]
        return [demo.Shown("addition-random", "chain>=28", policy, trace)]

    assert demo.typical_failure(made(adder(task))) is None
    assert demo.typical_failure(made(lookahead(task, 6), "lsb")) is None
    planted = made(lookahead(task, 6))
    found = demo.typical_failure(planted)
    assert found is not None
    few = demo.Shown("addition-puma", "chain>=28", "top1", planted[0].trace.take(slice(10)))
    assert demo.typical_failure([few, *planted]) == found, "of the model that fails most"
    failures = int((~planted[0].trace.exact_N).sum())
    assert failures > 10
    assert f"fails on {failures} of 60 sums with chain>=28; 100% of the most significant wrong digits" in found[0]
    assert re.search(r"off by (\+1 in a cell of role g|-1 in a cell of role k), with probability 0.997", found[0])
    assert "100% of the chain that it waits for was still hidden" in found[0]


def test_the_command_writes_its_page(
    shown: list[demo.Shown], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "decode_all", lambda progress: shown)
    monkeypatch.setattr("sys.argv", ["hardtail", "demo", "--out", str(page := tmp_path / "[new] page.html")])
    main()
    said = capsys.readouterr().out
    assert all(model.name in said for model in MODELS)
    assert "What next" in said
    assert f"{page}: every decode" in said
    assert page.stat().st_size > 100_000
