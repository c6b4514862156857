"""What records and traces say about how they came about: the version of the code, the device, the seeds."""

import subprocess
from pathlib import Path

import pytest

import hardtail.core.registry
from hardtail.core import provenance
from hardtail.core.provenance import code_version
from hardtail.core.trace_files import load_trace
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import chosen_policies
from hardtail.measuring.evaluate import Evaluating, evaluate_all, records_of
from hardtail.policies.base import Commit
from tests.test_evaluate import tiny


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


def test_records_and_traces_say_how_they_came_about(tmp_path: Path) -> None:
    task = hardtail.task("countdown")
    decoding = Decoding(Commit(each=8), seed=5, temperature=0.5)
    done: list[int] = []
    policies = chosen_policies(task, ("top1",))
    how = Evaluating(progress=done.append)
    found = evaluate_all(tiny(task), policies, ["natural"], 3, decoding, how, data_seed=9, traces=tmp_path)
    for record in records_of(list(found)):
        assert (record.data_seed, record.decode_seed, record.commit_rule) == (9, 5, "8 a step")
    assert sum(done) == 2 * 3  # as the progress bar expects: fully hidden, and half revealed
    about = load_trace(tmp_path / "natural.top1.npz").about
    assert (about["data_seed"], about["decode_seed"], about["temperature"]) == (9, 5, 0.5)


def test_one_process_is_one_version_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout that moves on under a long evaluation must not claim its records."""
    code_version.cache_clear()
    monkeypatch.setenv("HARDTAIL_COMMIT", "before")
    assert code_version() == "before"
    monkeypatch.setenv("HARDTAIL_COMMIT", "after")
    assert code_version() == "before"
    code_version.cache_clear()
