"""Run the README's five minutes, and compare how long each command takes with what the README says.

    python benchmarks/readme.py                  # all, in a fresh folder: wall time and processor time
    python benchmarks/readme.py --only zoo       # those whose words contain this

On cores that other programs use, only processor time means something. A command computes alone at first (a few seconds
to load PyTorch), then with all cores, so alone on two cores it takes between half its processor time and all of it.
"""

import argparse
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
HEADING = "## Five minutes"


class Listed(NamedTuple):
    """A command of the README, and how long it says that this takes."""

    words: list[str]
    said: str


def listed(readme: str) -> list[Listed]:
    """The commands under the heading, in their order."""
    block = readme.split(HEADING, 1)[1].split("```console\n", 1)[1].split("```", 1)[0]
    found = re.findall(r"^\$ hardtail (.*?) +# ([^:]*):", block, flags=re.MULTILINE)
    return [Listed(shlex.split(words), said) for words, said in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="run only commands that contain this")
    wanted = parser.parse_args().only
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "HARDTAIL_PROGRESS": "off"}
    print("    wall  processor  README          command", flush=True)
    total = spent = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for words, said in listed((ROOT / "README.md").read_text()):
            if wanted not in " ".join(words):
                continue
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            command = [sys.executable, "-m", "hardtail", *words]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            total, spent = total + wall, spent + used
            failed = f"  FAILED: {done.stderr.strip()[-200:]}" if done.returncode else ""
            print(f"{wall:6.1f} s   {used:6.1f} s  {said:<14}  {' '.join(words)}{failed}", flush=True)
    print(f"{total:6.1f} s   {spent:6.1f} s  in all")


if __name__ == "__main__":
    main()
