"""Where a number comes from: code, machine, library versions."""

import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from hardtail.core.version import __version__


@cache
def code_version() -> str:
    """The commit of the checkout that this package runs from, with `+` where it has uncommitted changes.

    Asked once: a checkout that moves on under a running process does not change the code that runs.
    A copy without its history is told by the environment variable HARDTAIL_COMMIT; an installed package has a version.
    """
    if told := os.environ.get("HARDTAIL_COMMIT"):
        return told
    folder = Path(__file__).resolve().parents[3]
    if not (folder / ".git").exists():
        return f"hardtail {__version__}"
    try:
        commit = _git(folder, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):  # no git, no repository, or no answer in time
        return f"hardtail {__version__}"


def machine(device: str) -> str:
    """The processor that did the work, in words."""
    import torch

    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else f"CPU {platform.machine()}"
    return f"{name}, torch {torch.__version__}"


def origin(device: str) -> dict[str, Any]:
    """The keys that every recorded number carries."""
    return {"commit": code_version(), "device": machine(device)}


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
