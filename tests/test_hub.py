"""Push to and load from the Hub, with its own client against a server of its API on loopback."""

import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard, constants, utils
from safetensors.torch import load_file, save_file

import hardtail as ht
from hardtail import HardtailError
from hardtail.cli.common import from_anywhere
from hardtail.core.files import save_instances
from hardtail.core.hub import Address, _warning_once, model_of
from hardtail.core.records import Accuracy, read_measurements
from hardtail.core.trace_files import save_trace
from hardtail.models.hf.loading import identified, load_hf, model_hash
from hardtail.study.recipes import recipe_named
from hardtail.study.store import Store
from hardtail.study.unit import Unit
from hardtail.tasks import datasets as data
from hardtail.training.run import train
from tests import study_toys
from tests.conftest import Command
from tests.diagnose_toys import gold_trace
from tests.hf_toys import saved
from tests.hub_server import TOKEN, Hub, serving

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # the Hub's client, in its uploads


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few steps."""
    recipe = recipe_named("addition-puma-smoke")
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(replace(recipe, steps=20, watch=replace(recipe.watch, eval_every=10)), folder)
    return folder


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The server, as the Hub that the client speaks to, with a user who is logged in and an empty cache."""
    with serving() as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.url)
        template = served.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield served


def test_a_users_own_downloads_still_show_their_progress(hub: Hub) -> None:
    """Also after an error."""
    utils.enable_progress_bars()
    with pytest.raises(HardtailError, match="no such repository"):
        model_of("hf:me/nothing")
    assert not utils.are_progress_bars_disabled()


def test_a_run_is_pushed_and_loaded_back_at_its_commit(run: Path, hub: Hub, hardtail_command: Command) -> None:
    assert hardtail_command("eval", str(run), "--policies", "top1", "--strata", "natural", "-n", "4")[0] == 0
    code, out, err = hardtail_command("push", str(run), "hf:me/try", "--licence", "apache-2.0")
    assert code == 0, err
    pinned = out.split()[-1]
    digest, files = hub.repositories["model", "me/try"].commits[-1]
    assert pinned == f"hf:me/try@{digest}"
    assert set(files) - {".gitattributes"} == {
        "README.md",
        "recipe.json",
        "best_probe.safetensors",
        "last.safetensors",
        "finished.json",
        "log.jsonl",
        "coverage.json",
        "evaluations.jsonl",
    }
    assert files["last.safetensors"] == (run / "last.safetensors").read_bytes()

    here, there = ht.load(run), ht.load(pinned)
    problems = here.task.sample(5, "chain>=4", seed=0)
    assert (ht.decode(here, problems).answer_NA == ht.decode(there, problems).answer_NA).all()
    assert there.name == f"me/try@{digest[:7]}"
    assert there.coverage == here.coverage is not None
    assert ht.load("hf:me/try", checkpoint="last").origin.checkpoint == "last"

    code, out, err = hardtail_command("eval", "hf:me/try", "--policies", "top1", "--strata", "natural", "-n", "4")
    assert code == 0, err
    assert "me/try@" in out
    assert " added" not in out  # the copy of what is on the Hub stays what it is
    assert there.folder is not None
    assert (there.folder / "evaluations.jsonl").read_bytes() == files["evaluations.jsonl"]


def test_the_card_says_what_was_recorded(run: Path, hub: Hub, tmp_path: Path, hardtail_command: Command) -> None:
    run = shutil.copytree(run, tmp_path / "measured", ignore=shutil.ignore_patterns("evaluations.jsonl"))
    assert hardtail_command("eval", str(run), "--policies", "top1", "--strata", "natural", "-n", "4")[0] == 0
    ht.push(run, "hf:me/card", licence="apache-2.0")
    text = hub.repositories["model", "me/card"].commits[-1][1]["README.md"].decode()
    card = ModelCard(text)  # the Hub's own reader
    assert (card.data.library_name, card.data.license) == ("hardtail", "apache-2.0")
    assert "`addition`: digits=" in text
    assert "`Puma`" in text
    assert "of step 20 of 20" in text or "of step 10 of 20" in text
    assert 'ht.load("hf:me/card")' in text
    assert card.data.eval_results is not None
    (accuracy,) = [held for held in read_measurements(run / "evaluations.jsonl") if isinstance(held, Accuracy)]
    (listed,) = card.data.eval_results
    assert (listed.metric_type, listed.metric_value) == ("exact_match", accuracy.exact_match)
    assert (listed.metric_name or "").endswith("of 4"), "four problems say little"
    assert f"| {accuracy.exact_match:.3f} [{accuracy.low:.3f}, {accuracy.high:.3f}] of 4 |" in text


def test_the_card_of_a_shipped_model_says_how_sure_its_figures_are(hardtail_command: Command) -> None:
    _, card, _ = hardtail_command("push", "zoo:maze-puma", "hf:me/model", "--dry-run")
    assert "| corridor>=20 | 0.428 [0.385, 0.472] of 500 | 0.484 [0.440, 0.528] of 500 |" in card


def test_a_revision_stays_what_it_was(run: Path, hub: Hub) -> None:
    first = ht.push("zoo:addition-random", "hf:me/model")
    second = ht.push(run, "hf:me/model", message="Another model")
    assert hub.repositories["model", "me/model"].messages[-1] == "Another model"
    assert ht.load(first).task.config()["digits"] == 32
    assert ht.load(second).task == ht.load("hf:me/model").task == recipe_named("addition-puma-smoke").task
    with pytest.raises(HardtailError, match="has no such revision"):
        ht.load("hf:me/model@nothing")


def test_a_push_replaces_what_an_earlier_one_left(run: Path, hub: Hub) -> None:
    ht.push(run, "hf:me/model")
    ht.push("zoo:addition-random", "hf:me/model")
    files = hub.repositories["model", "me/model"].commits[-1][1]
    assert {name for name in files if name.endswith(".safetensors")} == {"last.safetensors"}
    assert "log.jsonl" not in files
    assert ht.load("hf:me/model").origin.checkpoint == "last"  # though its recipe selects the other


def test_weights_alone_are_a_model(run: Path, hub: Hub) -> None:
    ht.push(run / "last.safetensors", "hf:me/weights")
    loaded = ht.load("hf:me/weights")
    assert (loaded.origin.checkpoint, loaded.origin.step) == ("last", 20)


def test_data_sets_and_traces_come_back_as_they_were(hub: Hub, tmp_path: Path, hardtail_command: Command) -> None:
    for ending in ("npz", "parquet"):
        path = tmp_path / f"x.{ending}"
        words = ("data", "addition", "--split", "test", "-n", "6", "--set", "digits=8", "--out", str(path))
        assert hardtail_command(*words)[0] == 0
        ht.push(path, f"hf:me/{ending}")
        (ours, manifest), (theirs, same) = ht.load_instances(path), ht.load_instances(f"hf:me/{ending}")
        assert manifest == same
        assert all((ours.arrays()[name] == array).all() for name, array in theirs.arrays().items())
    assert b"data_files" in hub.repositories["dataset", "me/parquet"].commits[-1][1]["README.md"]

    task = ht.task("addition", digits=4)
    instances = task.sample(3, "natural", seed=0)
    about = {"task": task.name, "config": task.config(), "model": "mine"}
    trace = replace(gold_trace(task, instances, instances.orders["lsb"]), about=about)
    save_trace(tmp_path / "t.npz", trace)
    pinned = ht.push(tmp_path / "t.npz", "hf:me/trace")
    assert np.array_equal(ht.load_trace(pinned).answer_NA, trace.answer_NA)
    code, out, err = hardtail_command("diagnose", "hf:me/trace/trace.npz")
    assert code == 0, err
    assert "fails on none of 3 sums" in out


def test_what_is_downloaded_is_used_without_a_network(run: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = ht.push(run, "hf:me/model")
    ht.load("hf:me/model")
    hub.failing = 503
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert ht.load("hf:me/model").name == ht.load(pinned).name
    with pytest.raises(HardtailError, match=r"cannot be reached, .* and there is no folder me/other here; connect"):
        ht.load("hf:me/other")


def test_a_hub_that_does_not_answer_is_mentioned_once(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client writes two lines about each of its attempts."""
    said: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    hub.failing = 503
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "handlers", [Kept()])
    with pytest.raises(HardtailError, match="cannot be reached"):
        ht.load("hf:me/model")
    assert said == ["hf:me/model: the Hub does not answer; trying again for up to half a minute"]


def test_what_else_the_client_says_is_passed_on(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "handlers", [Kept()])
    logger = logging.getLogger("huggingface_hub.utils._http")
    with _warning_once("it does not answer"):
        logger.warning("Rate limited. Waiting 9s before retry [Retry 1/5].")
        logger.warning("HTTP Error 503 thrown while requesting GET x")
        logger.warning("Retrying in 1s [Retry 1/5].")
        logger.warning("this is old; use that")
    assert said == ["Rate limited. Waiting 9s before retry [Retry 1/5].", "it does not answer", "this is old; use that"]


def test_refusals(run: Path, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for bad in ("hf:name", "hf:a/b/c", "hf:a/../b", "hf:a/b@", "hf:a/b c", "hf:/b"):
        with pytest.raises(HardtailError, match="names no repository"):
            Address.parse(bad)
    with pytest.raises(HardtailError, match="give where to push to as hf:user/name"):
        ht.push(run, "me/try")
    with pytest.raises(HardtailError, match="leave out @main"):
        ht.push(run, "hf:me/try@main")
    with pytest.raises(HardtailError, match="no such repository, or you have no access"):
        ht.load("hf:me/nothing")
    broken = shutil.copytree(run, tmp_path / "broken")
    raw = (broken / "best_probe.safetensors").read_bytes()
    (broken / "best_probe.safetensors").write_bytes(raw[:-1])
    with pytest.raises(HardtailError, match="damaged"):
        ht.push(broken, "hf:me/broken")
    assert ("model", "me/broken") not in hub.repositories  # it was refused before anything was made
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(HardtailError, match="log in"):
        ht.push(run, "hf:me/try")


def test_a_repository_of_something_else_is_neither_loaded_nor_overwritten(run: Path, hub: Hub) -> None:
    from huggingface_hub import HfApi

    api = HfApi()
    api.create_repo("me/bert")
    api.upload_file(path_or_fileobj=b"{}", path_in_repo="config.json", repo_id="me/bert")
    assert model_of("hf:me/bert") is None
    with pytest.raises(HardtailError, match=r"already holds something else \(config.json\)"):
        ht.push(run, "hf:me/bert")
    assert set(hub.repositories["model", "me/bert"].commits[-1][1]) == {".gitattributes", "config.json"}


def test_private_repositories_need_the_token(run: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    ht.push(run, "hf:me/secret", private=True)
    assert hub.repositories["model", "me/secret"].private
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(HardtailError, match="no access to it"):
        ht.load("hf:me/secret")


def test_a_folder_of_ours_is_a_run(run: Path) -> None:
    found = model_of(f"hf:{run}")
    assert found is not None
    assert ht.load(f"hf:{run}").origin == ht.load(run).origin
    assert model_of(f"hf:{run.parent}") is None


def test_a_model_of_another_project_is_loaded_by_its_name(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`hf:user/name` without a recipe.json goes to the adapters, from the Hub and from its cache."""
    from huggingface_hub import HfApi

    folder = saved(tmp_path / "bert", "bert").removeprefix("hf:")
    api = HfApi()
    api.create_repo("me/bert")
    api.upload_folder(folder_path=folder, repo_id="me/bert")
    problems = ht.task("addition", digits=4).sample(3, seed=0)
    here, there = (ht.load(name, task="addition,digits=4") for name in (f"hf:{folder}", "hf:me/bert"))
    answers = [ht.decode(model, problems).answer_NA for model in (here, there)]
    assert (answers[0] == answers[1]).all()
    found = load_hf("hf:me/bert", ht.task("addition", digits=4).vocabulary)
    assert found.pretrained.sha256 == model_hash(Path(folder))
    hub.failing = 503
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert model_of("hf:me/bert") is None
    assert (ht.decode(ht.load("hf:me/bert", task="addition,digits=4"), problems).answer_NA == answers[0]).all()


def uploaded(folder: str, name: str) -> str:
    """Put a folder into a repository; return the commit."""
    from huggingface_hub import HfApi

    api = HfApi()
    api.create_repo(name, exist_ok=True)
    return str(api.upload_folder(folder_path=folder.removeprefix("hf:"), repo_id=name).oid)


def test_a_model_of_another_project_is_one_commit(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hardtail_command: Command
) -> None:
    """Measuring and training name it by the same hash, whatever else was downloaded; an @ picks an older one."""
    folder = saved(tmp_path / "bert", "bert")
    (tmp_path / "bert" / "onnx").mkdir()
    (tmp_path / "bert" / "onnx" / "other.safetensors").write_bytes(b"of another program")
    first = uploaded(folder, "me/bert")
    tensors = load_file(tmp_path / "bert" / "model.safetensors")
    save_file(
        {name: -tensor for name, tensor in tensors.items()}, tmp_path / "bert" / "model.safetensors", {"format": "pt"}
    )
    second = uploaded(folder, "me/bert")

    vocabulary = ht.task("addition", digits=4).vocabulary
    trained = identified("hf:me/bert")
    assert trained.name == f"hf:me/bert@{second}"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "elsewhere"))
    measured = load_hf("hf:me/bert", vocabulary)
    assert measured.pretrained == trained
    assert measured.called == f"me/bert@{second[:7]}"
    assert not list((tmp_path / "elsewhere").rglob("onnx"))
    older = load_hf(f"hf:me/bert@{first}", vocabulary)
    assert older.pretrained.name == f"hf:me/bert@{first}"
    assert older.pretrained.sha256 != trained.sha256
    weights = [found.model.inner.state_dict()["bert.embeddings.word_embeddings.weight"] for found in (older, measured)]
    assert (weights[0] == -weights[1]).all()
    for wrong, reason in (
        (f"me/bert@{'0' * 40}", "no such revision"),
        ("me/bert@", "no such folder"),
        ("a/b/c", "no such folder"),
    ):
        code, _, err = hardtail_command("eval", f"hf:{wrong}", "--task", "addition,digits=4")
        assert code == 2
        assert reason in err
        assert err.count("hardtail: ") == err.count(f"hf:{wrong}") == 1


def test_code_that_comes_with_a_model_on_the_hub_runs_only_when_trusted(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = saved(tmp_path / "llada", "llada")
    uploaded(folder, "me/llada")
    with pytest.raises(HardtailError, match="only with --trust-remote-code"):
        ht.load("hf:me/llada", "addition,digits=4")
    there = ht.load("hf:me/llada", "addition,digits=4", trust_remote_code=True)
    problems = there.task.sample(3, seed=0)
    here = ht.load(folder, "addition,digits=4", trust_remote_code=True)
    assert (ht.decode(here, problems).answer_NA == ht.decode(there, problems).answer_NA).all()
    assert here.origin.pretrained is not None
    assert there.origin.pretrained is not None
    assert here.origin.pretrained.sha256 == there.origin.pretrained.sha256


def test_a_fine_tuned_model_is_pushed_without_the_path_of_its_base(
    hub: Hub, tmp_path: Path, hardtail_command: Command
) -> None:
    base = saved(tmp_path / "sécret" / "tiny", "bert")
    recipe = recipe_named("addition-random-smoke")
    watch = replace(recipe.watch, gen_every=0, probe_size=8, decoded=2, hard="")
    task, run = ht.task("addition", digits=4), tmp_path / "run"
    train(replace(recipe, task=task, steps=2, batch=8, train_size=32, watch=watch, model=identified(base)), run)
    words = ("--policies", "top1", "--strata", "natural", "-n", "3", "--checkpoint", "last")
    assert hardtail_command("eval", str(run), *words)[0] == 0
    pinned = ht.push(run, "hf:me/tuned")
    files = hub.repositories["model", "me/tuned"].commits[-1][1]
    card, digest = files["README.md"].decode(), identified(base).sha256
    assert f"| trained from | `hf:tiny`, SHA-256 `{digest}` |" in card
    assert "`Transformer`" not in card
    assert "sizes" not in card
    for name, raw in files.items():
        assert b"cret/tiny" not in raw, name
        assert str(tmp_path).encode() not in raw, name
    here, there = ht.load(run, checkpoint="last"), ht.load(pinned, checkpoint="last")
    assert there.origin.pretrained == replace(identified(base), name="hf:tiny")
    problems = task.sample(4, seed=0)
    assert (ht.decode(here, problems).answer_NA == ht.decode(there, problems).answer_NA).all()
    ht.push(run / "last.safetensors", "hf:me/weights")
    assert all(b"cret/tiny" not in raw for raw in hub.repositories["model", "me/weights"].commits[-1][1].values())
    assert b"cret/tiny" in (run / "last.safetensors").read_bytes(), "the run itself stays as it is"


def test_a_grid_is_trained_on_a_data_set_of_the_hub(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hardtail_command: Command
) -> None:
    """At the commit that it has, which the names of its runs and their records say."""
    plain, file = study_toys.entry(), tmp_path / "sums.npz"
    study_toys.measure_little(monkeypatch)
    monkeypatch.setattr("hardtail.study.grids.entries_named", lambda names: [plain])
    built = data.build(plain.recipe.task, n=40)
    save_instances(file, built.instances, built.manifest)
    commit = ht.push(file, "hf:me/sums").rpartition("@")[2]
    words = ["--data", "hf:me/sums", "--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    code, _, err = hardtail_command("study", "advance", plain.name, *words, "-n", "2", "--minutes", "5")
    assert code == 0, err
    (run,) = Store(tmp_path / "results").runs()
    assert run.name == f"{plain.arm}-on-me-sums-{commit[:7]}-s{plain.recipe.seed}"
    trained_on = run.log[0].data
    assert trained_on is not None
    assert (trained_on.file, trained_on.count) == (f"me/sums@{commit[:7]}", 40)
    code, out, _ = hardtail_command("study", plain.name, *words)
    assert run.name in out
    assert "recorded" in out
    unit = Unit(plain, tmp_path, Store(tmp_path), 2, None, data_file=Path(f"hf:me/sums@{commit}"))
    assert unit.from_anywhere().data_file == unit.data_file, "the same on every machine"


def test_a_model_for_other_machines_is_pinned_to_its_commit(run: Path, hub: Hub, hardtail_command: Command) -> None:
    """Workers load it later, perhaps after the next push."""
    pushed = [hardtail_command("push", str(run), "hf:me/pinned", "--licence", "mit")[1].split()[-1]]
    assert from_anywhere("hf:me/pinned") == pushed[0]
    pushed.append(
        hardtail_command("push", str(run / "last.safetensors"), "hf:me/pinned", "--licence", "mit")[1].split()[-1]
    )
    assert from_anywhere("hf:me/pinned") == pushed[1] != pushed[0]
    assert from_anywhere(pushed[0]) == pushed[0]
    assert from_anywhere(f"hf:{run}") == f"hf:{run}"
