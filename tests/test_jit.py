"""Compiled solvers: where their code is kept, and that other threads go on next to them."""

from pathlib import Path

import pytest

from hardtail.tasks import jit


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


def test_a_package_that_cannot_be_written_does_not_stop_the_solvers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their code is kept in the user's cache then, or nowhere."""
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setattr(jit, "BESIDE", blocked / "__pycache__")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = jit.kept_in("")
    assert folder is not None
    assert folder.parent == tmp_path / "cache" / "hardtail"
    assert jit.kept_in(str(tmp_path / "given")) == tmp_path / "given" / folder.name

    monkeypatch.setenv("XDG_CACHE_HOME", "~")
    assert jit.kept_in("") is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert jit.kept_in(str(blocked)) is None

    def next_one(x: int) -> int:
        return x + 1

    assert jit.jit(next_one)(3) == 4


def test_solvers_let_other_threads_go_on() -> None:
    def same(x: int) -> int:
        return x

    assert jit.jit(same).targetoptions["nogil"]  # type: ignore[attr-defined]
