"""A driver to be killed: `python -m tests.grid_driver ADDRESS FOLDER` says when its run is at work, and then waits."""

import sys
from pathlib import Path

import pytest

from hardtail.study.on_ray import Ray
from hardtail.study.unit import Seen
from tests.test_grid import on_ray, seeded

if __name__ == "__main__":
    address, folder = sys.argv[1], Path(sys.argv[2])
    run = seeded(53)

    def tell(rows: list[Seen]) -> None:
        if (folder / "marks" / run.name).exists():
            print("at work", flush=True)

    on_ray([run], folder, {run.name: "waits"}, pytest.MonkeyPatch(), Ray(address, watch=tell))
