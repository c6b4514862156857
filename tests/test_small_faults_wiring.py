"""What small faults change and no other test held: arguments on their way, and words for the rarer mistakes."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import hardtail
from hardtail import HardtailError, Instances
from hardtail.core import hub
from hardtail.core.files import save_instances
from hardtail.core.parquet import load_parquet, save_parquet
from hardtail.core.records import LogLine, Trust
from hardtail.core.types import MOST_TOKENS
from hardtail.decoding.elsewhere import PolicyElsewhere
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import AHEAD, spread
from hardtail.measuring.explain import diagnosed
from hardtail.measuring.given import GivenProblems
from hardtail.measuring.models import Reading, subject_of
from hardtail.measuring.statistics import auroc
from hardtail.models.denoiser import Function, ModelDenoiser
from hardtail.models.hf.loading import _speaking, identified, load_hf
from hardtail.policies.base import Commit
from hardtail.policies.named import policy_named
from hardtail.study.advance import study_parts
from hardtail.study.claims.evidence import Results
from hardtail.study.claims.figures import LateLoss, Reached
from hardtail.study.claims.ours.figures import DATA_SEEDS, REGISTERED, Decoded
from hardtail.study.grids import entries_named
from hardtail.study.plan import COUNTED, DIAGNOSED_ORDERS, KINDS_OF_WEIGHTS, _counted_decode, _Known, plan
from hardtail.study.recipes import recipe_named
from hardtail.study.store import Store
from hardtail.study.workplaces import FolderRuns
from hardtail.tasks import base, jit
from hardtail.tasks import datasets as data
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.countdown.text import read_chain
from hardtail.tasks.strata import Stratum
from hardtail.tasks.sudoku.solver.generate import START_P81, _thicken, state_of
from hardtail.tasks.sudoku.solver.search import solve_many
from hardtail.training.estimate import estimate
from tests import hf_toys
from tests.decoding_toys import TOY, hashed_logits, problems
from tests.planted_results import Planted

ADDITION = hardtail.task("addition", digits=4)


# -- models -----------------------------------------------------------------------------------------------------------


class Asked(nn.Module):
    """Says in which precision it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = list[tuple[str, bool]]()

    def forward(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        self.seen.append((torch.get_float32_matmul_precision(), torch.is_autocast_enabled("cpu")))
        return torch.zeros((*at_BA.shape, 8))


@pytest.mark.parametrize(
    ("precision", "products", "rounded"), [("fp32", "highest", False), ("tf32", "high", False), ("bf16", "high", True)]
)
def test_a_model_is_asked_in_the_precision_that_is_named(precision: Any, products: str, rounded: bool) -> None:
    before = torch.get_float32_matmul_precision()
    model: Any = Asked()
    zero = torch.zeros((1, 3), dtype=torch.int64)
    ModelDenoiser(model, 7, precision).logits(zero, zero)
    assert model.seen == [(products, rounded)]
    assert torch.get_float32_matmul_precision() == before
    assert not torch.is_autocast_enabled("cpu")


def test_the_mask_of_a_tokenizer_goes_before_that_of_a_configuration(tmp_path: Path) -> None:
    name, path = hf_toys.saved(tmp_path, "bert"), tmp_path / "config.json"
    mask = load_hf(name, ADDITION.vocabulary).model.layout.mask
    path.write_text(path.read_text().replace("{", '{\n  "mask_token_id": 1,', 1))
    assert load_hf(name, ADDITION.vocabulary).model.layout.mask == mask != 1


def test_how_other_peoples_models_read_is_refused_for_a_folder_of_ours(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").touch()
    for reading in (Reading(template="{prompt}"), Reading(trust_remote_code=True)):
        with pytest.raises(HardtailError, match=r"is for models of other projects \(hf:…\), not for hf:"):
            subject_of(f"hf:{tmp_path}", reading=reading)


def test_random_order_in_another_sampler_is_the_seeds() -> None:
    x, logits = torch.full((2, 12), 3), torch.zeros((2, 12, 5))
    found = [
        PolicyElsewhere(policy_named("random"), 3, Commit(each=4), seed).transfer_index(logits, 0.0, "", x == 3, x)[1]
        for seed in (0, 1)
    ]
    assert torch.equal(found[0][1], found[1][0])  # a row's number is added to the seed
    assert not torch.equal(found[0][0], found[1][0])


@pytest.mark.parametrize("workers", [2, 3])
def test_as_many_jobs_are_under_way_as_workers_need(workers: int) -> None:
    taken = list[int]()

    def job(number: int) -> int:
        taken.append(number)
        return number

    results = spread(
        map(job, range(50)), lambda denoiser, moved: lambda job: job, TOY, Decoding(workers=workers), print
    )
    assert next(results) == 0
    assert len(taken) == AHEAD * workers
    results.close()


# -- files ------------------------------------------------------------------------------------------------------------


def test_problems_on_the_hub_are_read_as_a_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = data.build(ADDITION, "test", n=3)
    save_instances(tmp_path / "data.npz", built.instances, built.manifest)
    pinned = Path(f"hf:me/sums@{'a' * 40}")
    monkeypatch.setattr(hub, "pinned_data", lambda path: pinned)
    monkeypatch.setattr(hub, "fetch", lambda *given: hub.Snapshot(tmp_path, hub.Address("me/sums", "a" * 40)))
    found = GivenProblems.read(ADDITION, Path("hf:me/sums"))
    assert (found.file.file, found.file.count) == ("me/sums@aaaaaaa", 3)
    np.testing.assert_array_equal(found.instances.tokens_NL, built.instances.tokens_NL)


@pytest.mark.parametrize(("name", "kind"), [("maskable_NA", np.uint8), ("prompt_len_N", np.int64)])
def test_a_column_of_another_type_is_named(name: str, kind: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    built = data.build(ADDITION, "test", n=3)
    path = tmp_path / "data.parquet"
    save_parquet(path, built.instances, built.manifest, {})
    held = pq.read_table(path)
    place, array = held.schema.get_field_index(name), built.instances.arrays()[name].astype(kind)
    column = pa.array(array) if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), 5)
    pq.write_table(held.set_column(place, name, column), path)
    with pytest.raises(HardtailError, match=rf"the column '{name}' \(.*\) is not "):
        load_parquet(path)


def test_a_run_without_files_has_gained_nothing(tmp_path: Path) -> None:
    runs = FolderRuns(tmp_path)
    assert runs.gained("none") == (0, 0)
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "evaluations.jsonl").write_bytes(b"12345")
    assert runs.gained("some") == (0, 5)


def test_compiled_code_is_kept_beside_the_solvers_or_where_the_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And never in the folder that a command happens to run in."""
    from numba import config

    def used(before: str) -> Path:
        seen = list[str]()
        monkeypatch.setattr(config, "CACHE_DIR", before)
        monkeypatch.setattr("numba.njit", lambda **how: lambda function: seen.append(config.CACHE_DIR))
        jit.jit(lambda: None)
        assert before == config.CACHE_DIR
        return Path(seen[0])

    own, given = used(""), used(str(tmp_path))
    assert own.parent == Path(jit.__file__).parent / "__pycache__"
    assert given.parent == tmp_path
    assert own.name == given.name
    assert own.name.startswith("jit-")


# -- problems ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chain", "fault"),
    [
        ("1+2=3,3+4=7,3+7=10", "equation 3: there is no 3 left"),
        ("1+2=3,9+4=13", "equation 2: there is no number 9"),
        ("1+2=3,1+4=5", "equation 2: there is no 1 left"),
        ("1+2=3,3+4=7,7+5=12", None),
        ("1+2=3,3+4=7", "the 5 is not used"),
        ("1+2=3,3+4=7,7-5=2", "ends in 2, not in the target 12"),
    ],
)
def test_what_is_wrong_with_a_chain(chain: str, fault: str | None) -> None:
    assert read_chain(chain, [1, 2, 4, 5], 12)[1] == fault


@pytest.mark.parametrize("extra", [1, 3])
def test_as_many_clues_are_put_back_as_were_asked_for(extra: int) -> None:
    puzzle_81 = START_P81[0].copy()
    solution_81 = solve_many(puzzle_81[None])[1][0]
    before = int((puzzle_81 > 0).sum())
    _thicken(state_of(np.uint64(5)), 0, extra, puzzle_81, solution_81.astype(np.uint8))
    assert int((puzzle_81 > 0).sum()) == before + extra


class Choosy(Addition):
    """One draw in four has a chain of nine; gives up after five seconds without any."""

    patience = 5.0

    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        made = super().propose(key_N, self.stratum("natural"))
        return replace(
            made, strata={**made.strata, "chain": np.where(key_N % np.uint64(4) == 0, 9, 0).astype(np.int16)}
        )


def test_drawing_goes_on_while_some_of_what_is_asked_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes a second here; all together take longer than the patience."""
    ticks = count()
    monkeypatch.setattr(base, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))
    found = Choosy(digits=12).sample(64, "chain>=9", seed=1)
    assert (found.strata["chain"] == 9).all()
    assert next(ticks) > 2 * Choosy.patience


@pytest.mark.parametrize(("mask_id", "fits"), [(MOST_TOKENS, False), (-1, False), (0, True)])
def test_a_mask_that_no_trace_can_hold_is_refused(mask_id: int, fits: bool) -> None:
    asked = Function(hashed_logits, mask_id)
    alone = replace(problems(1, cells=1), maskable_NA=np.ones((1, 1), dtype=np.bool_))
    if fits:
        assert decode(asked, alone, policy_named("top1")).mask_id == mask_id
    else:
        with pytest.raises(HardtailError, match=f"8 tokens and its mask is {mask_id:,}; traces hold tokens from 0"):
            decode(asked, alone, policy_named("top1"))


# -- the study --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ([REGISTERED] * 3, ""),
        ([REGISTERED, REGISTERED + 5, REGISTERED - 1], "2,000 + 2,005 + 1,999 instances of 3 × 2,000"),
        ([REGISTERED] * 2, "2,000 + 2,000 instances of 3 × 2,000"),
    ],
)
def test_less_than_was_registered_is_said(sizes: list[int], told: str, tmp_path: Path) -> None:
    figure = Decoded("addition-papl-paper-s42", "check", "chain>=28", "exact_match")
    made = Planted(tmp_path)
    made.plant(figure, 0.9)
    held = made.evaluations[figure.run]
    planted = {of["data_seed"]: of for of in held if "data_seed" in of}
    made.evaluations[figure.run] = [of for of in held if "data_seed" not in of]
    made.evaluations[figure.run] += [planted[seed] | {"n": n} for seed, n in zip(DATA_SEEDS, sizes, strict=False)]
    assert figure.limits(Results(made.written())) == (f"less than registered: {told}" if told else "")


def test_measuring_takes_every_decode_of_both_kinds_of_weights(tmp_path: Path) -> None:
    (entry,) = entries_named(["maze-puma-s42"])
    made = plan([entry], tmp_path / "runs", Store(tmp_path / "results"), 50).runs[0]
    task = entry.recipe.task
    decodes = sum(part.n * len(policies) for part, policies in study_parts(task, 50))
    decodes += DIAGNOSED_ORDERS * sum(part.n for part in diagnosed(task, (), None))
    assert made.measuring == pytest.approx(KINDS_OF_WEIGHTS * decodes * _counted_decode(entry.recipe))


@pytest.mark.parametrize(
    ("device", "wall", "counts"),
    [("NVIDIA H200", 600.0, True), ("CPU x86_64", 600.0, False), ("NVIDIA H200", None, False)],
)
def test_time_on_a_gpu_is_known_from_runs_on_a_gpu(device: str, wall: float | None, counts: bool) -> None:
    (entry,) = entries_named(["maze-puma-s42"])
    ran = SimpleNamespace(arm=entry.arm, device=device, wall=wall, steps=1000)
    run = SimpleNamespace(entry=ran, name="earlier", folder=Path(), task="maze", evaluations=[])
    store: Any = SimpleNamespace(runs=lambda: [run])
    known = _Known(store)
    known.__dict__["_works"] = []  # no recipe is read
    found = known.step_seconds(entry)
    assert found == ((0.6, "earlier") if counts else (estimate(entry.recipe).gpu_seconds / entry.recipe.steps, COUNTED))


@pytest.mark.parametrize(
    ("state", "step", "left"), [("missing", 0, 1.0), ("started", 1000, 0.9), ("trained", 10_000, 0.0)]
)
def test_steps_that_are_saved_are_not_paid_again(
    state: str, step: int, left: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = entries_named(["maze-puma-s42"])
    entry = replace(entry, recipe=replace(entry.recipe, steps=10_000))
    monkeypatch.setattr(FolderRuns, "stages", lambda runs, names: dict.fromkeys(names, (state, step)))
    found = plan([entry], tmp_path / "runs", Store(tmp_path / "results"), 50)
    (run,) = found.runs
    assert run.training == pytest.approx(left * estimate(entry.recipe).gpu_seconds)
    assert found.seconds == run.seconds == run.training + run.measuring
    assert (found.longest, found.recorded) == (run, 0)


def test_what_fine_tuning_keeps_in_memory(tmp_path: Path) -> None:
    """Seven numbers for each weight, and for each token 22 vectors a layer and the logits."""
    name = hf_toys.saved(tmp_path, "bert")
    recipe = replace(recipe_named("addition-random-smoke"), task=ADDITION, model=identified(name), batch=3)
    model = load_hf(name, ADDITION.vocabulary).model
    config, length = model.config, model.layout.length(ADDITION.seq_len)
    weights = sum(map(torch.numel, model.parameters()))
    kept = 3 * length * (config.hidden_size * config.num_hidden_layers * 22 + config.vocab_size) * 4
    found = estimate(recipe)
    assert (found.parameters, found.memory) == (weights, weights * 4 * 7 + kept)
    assert found.flops_per_step == 3.0 * 3 * recipe.accumulate * 2.0 * weights * length


def logged(patience: int | None, *lines: tuple[int, float | None, float | None]) -> Any:
    """A run of a hundred steps whose log has these steps, losses and accuracies."""
    log = [LogLine(step=step, loss=loss, natural=natural) for step, loss, natural in lines]
    return SimpleNamespace(log=log, entry=SimpleNamespace(steps=100, patience=patience))


def test_the_loss_of_a_part_of_training_includes_its_ends() -> None:
    figure = LateLoss("addition", "random", 0.2, 0.4)
    lines = (19, 9.0, None), (20, 1.0, None), (30, None, 0.5), (40, 3.0, None), (41, 9.0, None)
    assert figure._value(logged(None, *lines)) == 2.0
    assert figure._value(logged(5, *lines)) is None
    assert figure._value(logged(None, (10, 1.0, None))) is None


def test_the_step_that_reached_an_accuracy() -> None:
    figure = Reached("addition", "random", 0.5)
    lines = (0, None, 0.1), (10, None, 0.5), (20, None, 0.4), (30, 1.0, None)
    assert figure._value(logged(None, *lines)) == 10.0
    assert figure._value(logged(None, (0, None, 0.7))) == 1.0  # a ratio divides by it
    assert figure._value(logged(None, (0, None, 0.1), (20, None, 0.4))) == 20.0  # the last, if none did
    assert figure._value(logged(7, (0, None, 0.1), (20, None, 0.4))) is None  # it might have, later
    assert figure._value(logged(7, *lines)) == 10.0
    assert figure._value(logged(None, (30, 1.0, None))) is None


@pytest.mark.parametrize(("wrong", "cases"), [(7, 3), (3, 3), (5, 5), (0, 0)])
def test_an_area_is_as_sure_as_the_rarer_kind_of_answers_is_common(wrong: int, cases: int) -> None:
    trust = Trust(policy="top1", stratum="natural", n=10, score="halves energy", passes=4, wrong=wrong)
    figure = Decoded("addition-papl-paper-s42", "top1", "natural", "auroc", "halves energy")
    assert figure._cases(trust) == cases


@pytest.mark.parametrize("policy", ["check,draft=top1,then=refill,rounds=4", "ladder,rungs=top1/margin,limit=0"])
def test_a_schedule_that_has_ended_goes_on_with_its_last_step(policy: str) -> None:
    """A policy that fills cells again does so after the last of its steps."""
    trace = decode(TOY, problems(20), policy_named(policy), Decoding(commit=Commit(steps=3, schedule="dream")))
    assert trace.step_NT.max() > 6
    assert (trace.answer_NA != trace.mask_id).all()


def test_an_area_of_one_ends_at_one() -> None:
    """Rounding alone would put the upper end of some intervals above it."""
    for n in range(1, 300):
        apart = np.arange(2 * n) >= n
        assert (auroc(apart.astype(float), apart).high or 0) <= 1.0, n


def test_an_error_of_another_library_without_words_is_named() -> None:
    pytest.importorskip("transformers")
    with pytest.raises(HardtailError, match="hf:model cannot be loaded: RuntimeError"), _speaking("hf:model", True):
        raise RuntimeError


def test_solvers_let_other_threads_go_on() -> None:
    def same(x: int) -> int:
        return x

    assert jit.jit(same).targetoptions["nogil"]  # type: ignore[attr-defined]
