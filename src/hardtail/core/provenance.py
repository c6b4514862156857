"""Where a number comes from: code, machine, library versions."""

import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import TypedDict

from hardtail.core.version import __version__


class Origin(TypedDict):
    """The code and the machine that every recorded number names."""

    commit: str
    device: str


@cache
def code_version() -> str:
    """The commit of the checkout that this package runs from, with `+` where it has uncommitted changes.

    Determined once: if the checkout changes while a process runs, the code that runs stays the same. The environment
    variable HARDTAIL_COMMIT names the commit of a copy without history; an installed package has its version.
    """
    if given := os.environ.get("HARDTAIL_COMMIT"):
        return given
    folder = Path(__file__).resolve().parents[3]
    if not (folder / ".git").exists():
        return f"hardtail {__version__}"
    try:
        commit = _git(folder, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):  # no git, no repository, or no answer in time
        return f"hardtail {__version__}"


def machine(device: str) -> str:
    """The name of the processor that did the work."""
    import torch

    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else f"CPU {platform.machine()}"
    return f"{name}, torch {torch.__version__}"


def origin(device: str) -> Origin:
    return {"commit": code_version(), "device": machine(device)}


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
