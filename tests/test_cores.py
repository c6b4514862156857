"""How many cores a process may use: affinities, and quotas of control groups in both versions."""

import os
from pathlib import Path

import pytest

from hardtail.core.cores import usable_cores


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("0::/a/b\n", {"a/cpu.max": "150000 100000\n"}, 2),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n"}, 1),
        ("0::/elsewhere\n", {"cpu.max": "300000 100000\n"}, 3),
        ("0::/a:b\n", {"a:b/cpu.max": "100000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 4),
        ("0::/\n", {"cpu.max": "nonsense\n"}, 4),
        ("0::/\n", {"cpu.max": "100000 0\n"}, 4),
        ("0::/\n", {"cpu.max": "x 1\n"}, 4),
        ("0::/\n", {"cpu.max": ""}, 4),
        (
            "3:cpu,cpuacct:/x\n1:name=systemd:/\n",
            {"cpu,cpuacct/x/cpu.cfs_quota_us": "200000\n", "cpu,cpuacct/x/cpu.cfs_period_us": "100000\n"},
            2,
        ),
        ("2:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ("", {}, 4),
    ],
)
def test_quotas_of_control_groups_count(
    own: str, files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        (tmp_path / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "groups" / name).write_text(text)
    assert usable_cores(tmp_path / "groups", tmp_path / "own") == cores
    assert usable_cores(tmp_path / "groups", tmp_path / "missing") == 4


@pytest.mark.parametrize(("there", "usable"), [(6, 6), (None, 1)])
def test_cores_of_a_system_without_affinities(there: int | None, usable: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("os.cpu_count", lambda: there)
    assert usable_cores(Path("/nowhere"), Path("/nowhere")) == usable
