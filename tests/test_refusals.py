"""Refusals that nothing else provokes: each names what is wrong, before anything is written or trusted."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hardtail.core.registry
from hardtail import HardtailError, Instances, Trace
from hardtail.core import hub, provenance, vocabulary
from hardtail.core.archives import Header
from hardtail.core.files import save_instances
from hardtail.core.frames import pandas_or_error
from hardtail.core.manifest import Manifest
from hardtail.core.parquet import pyarrow_or_error
from hardtail.core.records import jsonable
from hardtail.core.registry import Registry
from hardtail.core.schema import check_instance_headers, check_instances
from hardtail.core.trace_files import load_trace, save_trace, trace_writer
from hardtail.core.types import MOST_TOKENS
from hardtail.core.vocabulary import Vocabulary
from hardtail.decoding.loop import decode
from hardtail.policies.confidence import Top1
from tests.decoding_toys import TOY, problems

# -- files ------------------------------------------------------------------------------------------------------------


def test_data_and_traces_have_an_ending_that_their_manifest_does_not_have(tmp_path: Path) -> None:
    instances = problems(3)
    manifest = Manifest(split="all")
    with pytest.raises(HardtailError, match=r"sums.json must end in .npz"):
        save_instances(tmp_path / "sums.json", instances, manifest)
    with pytest.raises(HardtailError, match=r"trace.json must end in .npz"):
        save_trace(tmp_path / "trace.json", decode(TOY, instances, Top1()))
    assert not list(tmp_path.iterdir())


def test_a_trace_without_parts_is_no_trace(tmp_path: Path) -> None:
    with trace_writer(tmp_path / "trace.npz"):
        pass
    with pytest.raises(HardtailError, match="contains no part of a trace; decode it again"):
        load_trace(tmp_path / "trace.npz")


def test_a_trace_saves_itself(tmp_path: Path) -> None:
    trace = decode(TOY, problems(3), Top1())
    trace.save(str(tmp_path / "own.npz"))
    np.testing.assert_array_equal(load_trace(tmp_path / "own.npz").token_NT, trace.token_NT)


@pytest.mark.parametrize("name", ["tokens_NL", "prompt_len_N", "maskable_NA", "scored_NA"])
def test_instances_without_one_of_their_arrays(name: str) -> None:
    arrays = problems(3).arrays()
    del arrays[name]
    with pytest.raises(HardtailError, match=f"not a set of instances: the array '{name}' is missing"):
        Instances.from_arrays(arrays)
    headers = {name: Header(array.dtype, array.shape) for name, array in arrays.items()}
    with pytest.raises(HardtailError, match=f"not a set of instances: the array '{name}' is missing"):
        check_instance_headers(headers)


def test_a_trace_without_one_of_its_arrays() -> None:
    trace = decode(TOY, problems(3), Top1())
    arrays = trace.arrays()
    del arrays["prob_NT"]
    with pytest.raises(HardtailError, match="not a trace: the array 'prob_NT' is missing"):
        Trace.from_arrays(arrays, trace.mask_id, {})


@pytest.mark.parametrize(("token", "fits"), [(0, True), (MOST_TOKENS - 1, True), (MOST_TOKENS, False), (-1, False)])
def test_tokens_of_a_file_are_tokens(token: int, fits: bool) -> None:
    instances = problems(3)
    wide_NL = instances.tokens_NL.astype(np.int32)
    wide_NL[1, 0] = token
    held = replace(instances, tokens_NL=wide_NL)
    if fits:
        check_instances(held)
    else:
        with pytest.raises(HardtailError, match="it has tokens outside 0 to 1,048,575"):
            check_instances(held)


def test_only_numbers_and_text_are_recorded() -> None:
    assert jsonable({"a": np.float32(0.5), "b": np.arange(2)}) == {"a": 0.5, "b": [0, 1]}
    with pytest.raises(TypeError, match="cannot be recorded"):
        jsonable(object())


@pytest.mark.parametrize(("signs", "reason"), [("aba", "the sign 'a' twice"), (("x", "y z"), "the sign 'y z'")])
def test_a_vocabulary_has_every_sign_once(signs: Any, reason: str) -> None:
    with pytest.raises(HardtailError, match=reason):
        Vocabulary(signs)


@pytest.mark.parametrize("more", [0, 1])
def test_a_vocabulary_has_as_many_tokens_as_traces_can_hold(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "MOST_TOKENS", 1000)
    words = tuple(f"w{number}" for number in range(1000 - 2 + more))
    if more:
        with pytest.raises(HardtailError, match="a vocabulary has 1,001 tokens; it can have 1,000"):
            Vocabulary(words)
    else:
        assert Vocabulary(words).size == 1000


# -- packages that are not installed ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("package", "ask", "reason"),
    [
        ("pandas", pandas_or_error, r"pip install 'hardtail\[frames\]'"),
        ("pyarrow", pyarrow_or_error, r"pip install 'hardtail\[parquet\]'"),
        ("huggingface_hub", lambda: hub.fetch(hub.Address("me/model"), ["a"]), r"pip install 'hardtail\[hub\]'"),
    ],
)
def test_a_package_that_is_not_installed_is_named(
    package: str, ask: Callable[[], Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(HardtailError, match=reason):
        ask()


# -- the Hub ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("\n  \n  the name is odd \nand more"), "hf:me/model@main: the name is odd$"),
        (RuntimeError(""), "hf:me/model@main: RuntimeError$"),
        (HardtailError("as it is"), "^as it is$"),
    ],
)
def test_whatever_the_hubs_client_raises_is_a_sentence(
    error: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any, **how: Any) -> None:
        raise error

    monkeypatch.setattr("huggingface_hub.HfApi.snapshot_download", fail)
    with pytest.raises(HardtailError, match=told):
        hub.fetch(hub.Address("me/model", "main"), ["a"])


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, "there is no such repository, or it is not yours to use"),
        (403, "there is no such repository, or it is not yours to use"),
        (404, "there is no such repository, or it is not yours to use"),
        (418, "the Hub answered 418; try again later"),
    ],
)
def test_an_answer_of_the_hub_that_is_no_success(status: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx
    from huggingface_hub.errors import HfHubHTTPError

    def fail(*given: Any, **how: Any) -> None:
        request = httpx.Request("GET", "http://127.0.0.1/")
        raise HfHubHTTPError("no", response=httpx.Response(status, request=request))

    monkeypatch.setattr("huggingface_hub.HfApi.snapshot_download", fail)
    with pytest.raises(HardtailError, match=f"^hf:me/model: {told}"):
        hub.fetch(hub.Address("me/model"), ["a"])


def test_a_data_set_of_the_hub_without_our_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Any]()

    def found(address: hub.Address, files: Any, kind: str) -> hub.Snapshot:
        asked.append((address, list(files), kind))
        return hub.Snapshot(tmp_path, address)

    monkeypatch.setattr(hub, "fetch", found)
    with pytest.raises(HardtailError, match=r"hf:me/data is a data set without data.npz or data.parquet; give one"):
        hub.data_file("hf:me/data", "data", (".npz", ".parquet"))
    (tmp_path / "data.parquet").touch()
    for name in ("hf:me/data", "hf:me/data/data.npz", "hf:me/data/trace.json"):
        assert hub.data_file(name, "data", (".npz", ".parquet")) == tmp_path / "data.parquet"
    (tmp_path / "data.npz").touch()
    assert hub.data_file("hf:me/data", "data", (".npz", ".parquet")) == tmp_path / "data.npz"
    assert set(map(repr, asked)) == {
        repr((hub.Address("me/data"), ["data.npz", "data.parquet", "data.json"], "dataset"))
    }


@pytest.mark.parametrize(
    ("source", "name"),
    [("folder/sums.npz", "sums.npz"), ("hf:me/sums@abc1234def", "me/sums@abc1234"), ("hf:me/sums", "me/sums")],
)
def test_what_records_call_a_file_of_problems(source: str, name: str) -> None:
    assert hub.called(Path(source)) == name


# -- names and versions -----------------------------------------------------------------------------------------------


def test_a_plug_in_does_not_take_a_name_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(name, f"theirs:{name}", "hardtail.toys") for name in ("own", "new")]
    monkeypatch.setattr(hardtail.core.registry, "entry_points", EntryPoints(points).select)
    toys: Registry[Any] = Registry("toy", "hardtail.toys", {"own": "ours:own"}, lambda found: None)
    with pytest.warns(UserWarning, match="toy 'own': theirs:own is ignored for ours:own"):
        assert toys.names() == ["own", "new"]
    assert toys.paths() == {"own": "ours:own", "new": "theirs:new"}


def test_a_checkout_is_named_by_its_commit_and_by_whether_it_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HARDTAIL_COMMIT", raising=False)
    file = tmp_path / "src/hardtail/core/provenance.py"
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.setattr(provenance, "__file__", str(file))
    version = provenance.code_version.__wrapped__
    assert version() == f"hardtail {hardtail.__version__}"

    def git(*words: str) -> str:
        named = ("-c", "user.name=x", "-c", "user.email=x@y")
        done = subprocess.run(["git", "-C", str(tmp_path), *named, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    (tmp_path / ".git").touch()  # no repository
    assert version() == f"hardtail {hardtail.__version__}"
    (tmp_path / ".git").unlink()
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "first")
    commit = git("rev-parse", "HEAD")[:12]
    assert version() == commit
    (tmp_path / "notes.txt").touch()
    assert version() == commit  # a file that is not ours changes nothing
    file.write_text("changed")
    assert version() == f"{commit}+"
    monkeypatch.setenv("HARDTAIL_COMMIT", "given")
    assert version() == "given"
