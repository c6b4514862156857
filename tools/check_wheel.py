"""Build the wheel, install it into a clean environment, and run the README's first commands there.

    python tools/check_wheel.py                      # the package alone, then each light extra alone on top of it
    python tools/check_wheel.py --extras hf log      # these extras instead
    python tools/check_wheel.py --extras all --extras-only      # every extra that a command needs; `make extras-test`

Commands run outside the checkout, with fewer instances and steps than the README says. An extra is installed into an
environment of its own that sees the package's, so that it gets nothing from another extra, and there does what it is
for: a model that `transformers` saved is measured and trained, a run is pushed to and loaded from a server of the Hub's
API on this machine, a run is logged to three programs, and so on. `grid` and `s3` are left out: they need a cluster and
a server, and the tests have those.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.hf_toys import saved, tokenizer  # noqa: E402
from tests.hub_server import TOKEN, serving  # noqa: E402

LIGHT = ("report", "hub", "frames", "parquet")


class Expected(NamedTuple):
    """A program's words, its exit code, and a part of what it says."""

    words: tuple[str, ...]
    code: int = 0
    says: str = ""


DATA = ("hardtail", "data", "addition", "--split", "test", "-n", "4", "--set", "digits=4", "--out")
FRAME = "import hardtail as ht; print(ht.evaluate('runs/own', policies=['top1'], strata=['natural'], n=2).to_frame())"
TRAIN = ("hardtail", "train", "addition-puma-smoke", "--steps", "4", "--out")
LM_EVAL = ("hardtail", "lm-eval", "run", "--tasks", "hardtail_addition_natural", "--metadata", '{"n": 2}')
HF = ("hardtail", "eval", "hf:tiny", "--task", "addition,digits=4", "--template", "{prompt}", "-n", "2")
FIGURES = ("hardtail", "report", "runs/own", "--figures", "figures", "-n", "2")
LIST = "import pathlib; print(*pathlib.Path('figures').iterdir())"
WITHOUT = {
    "report": Expected(FIGURES, 2, "hardtail[report]"),
    "hub": Expected(("hardtail", "eval", "hf:me/model"), 2, "hardtail[hub]"),
    "frames": Expected(("python", "-c", FRAME), 1, "hardtail[frames]"),
    "parquet": Expected((*DATA, "x.parquet"), 2, "hardtail[parquet]"),
    "hf": Expected(HF, 2, "hardtail[hf]"),
    "log": Expected((*TRAIN, "runs/logged", "--log", "tensorboard"), 2, "hardtail[log]"),
    "lm-eval": Expected(LM_EVAL, 2, "hardtail[lm-eval]"),
}
"""What needs each extra, and says so without it."""
TUNE = ("hardtail", "train", "addition-random-smoke", "--task.digits", "4", "--model", "hf:tiny", "--steps", "2")
WITH = {
    "report": (Expected(FIGURES), Expected(("python", "-c", LIST), 0, ".pdf")),
    "hub": (
        Expected(("hardtail", "push", "runs/own", "hf:me/own"), 0, "hf:me/own@"),
        Expected(("hardtail", "eval", "hf:me/own", "-n", "2"), 0, "me/own@"),
    ),
    "frames": (Expected(("python", "-c", FRAME), 0, "accuracy"),),
    "parquet": (Expected((*DATA, "x.parquet"), 0, "4 instances"), Expected(("hardtail", "inspect", "x.parquet"))),
    "hf": (Expected(HF, 0, "tiny"), Expected((*TUNE, "--out", "runs/tuned"), 0, "finished at step 2")),
    "log": (Expected((*TRAIN, "runs/logged", "--log", "tensorboard", "wandb", "trackio"), 0, "finished"),),
    "lm-eval": (
        Expected((*LM_EVAL, "--model", "hardtail", "--model_args", "model=zoo:addition-random"), 0, "exact_match"),
        Expected((*LM_EVAL, "--model", "hf", "--model_args", "pretrained=gpt"), 0, "exact_match"),
    ),
}
"""What each extra is for."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extras", nargs="*", default=LIGHT, choices=["all", *sorted(WITH)])
    parser.add_argument("--extras-only", action="store_true", help="leave out what needs no extra")
    words = parser.parse_args()
    extras = words.extras
    extras = list(WITH) if "all" in extras else extras
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
        subprocess.run([*build, str(ROOT)], check=True, stdout=subprocess.DEVNULL)
        (wheel,) = folder.glob("*.whl")
        base = _environment(folder / "base")
        _install(base, str(wheel))
        work = folder / "work"
        work.mkdir()
        _say(began, f"{wheel.name} is installed in a clean environment")
        if words.extras_only:
            _check(base, work, Expected((*TRAIN, "runs/own")))
        else:
            _check_base(base, work)
            _say(began, "the README's commands and Python blocks run, and what needs an extra names it")
        _save_models(work)
        for extra in extras:
            own = _environment(folder / extra)
            (site,) = own.glob("lib/python*/site-packages")
            (below,) = base.glob("lib/python*/site-packages")
            (site / "base.pth").write_text(f"{below}\n")
            (own / "bin" / "hardtail").write_text(f"#!{own}/bin/python\nfrom hardtail.__main__ import main\nmain()\n")
            (own / "bin" / "hardtail").chmod(0o755)
            _install(own, f"hardtail[{extra}] @ {wheel.as_uri()}")
            with serving() as hub:
                for expected in WITH[extra]:
                    _check(own, work, expected, hub.url if extra == "hub" else None)
            _say(began, f"the extra {extra} works alone")


def _check_base(base: Path, work: Path) -> None:
    """The README's commands, and what needs an extra."""
    slow = Expected(("hardtail", "gallery"))  # it compiles the solvers of all tasks, which takes half a minute
    with ThreadPoolExecutor(1) as aside:
        begun = aside.submit(_check, base, work, slow)
        for expected in (*readme_commands(), *WITHOUT.values()):
            if expected != slow:
                _check(base, work, expected)
        begun.result()


def readme_commands() -> list[Expected]:
    """The README's commands that are ours, with less to do, and its Python blocks."""
    text = (ROOT / "README.md").read_text()
    found = [Expected(("hardtail", "--version")), Expected((*TRAIN, "runs/own"))]
    for line in re.findall(r"^\$ (hardtail .*)$", text, flags=re.MULTILINE):
        words = shlex.split(line, comments=True)
        if words[1] == "claims":  # the recorded runs are in the repository
            found.append(Expected(tuple(words), 2, "no recorded runs"))
        elif words[1] == "train":
            found.append(Expected((*words, "--steps", "2")))
        else:
            pairs = zip(["", *words], words, strict=False)
            found.append(Expected(tuple("2" if before == "-n" else word for before, word in pairs)))
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        short = re.sub(r"\bn=100\b", "n=2", block).replace("sample(50,", "sample(2,")
        found.append(Expected(("python", "-c", short)))
    return found


def _save_models(work: Path) -> None:
    """Tiny models as other people's programs save them: one to hide cells from, one that reads from left to right."""
    from transformers import GPT2Config, GPT2LMHeadModel

    saved(work / "tiny", "bert")
    tokens = tokenizer()
    tokens.eos_token = "[SEP]"
    tokens.save_pretrained(work / "gpt")
    own = {"vocab_size": len(tokens), "bos_token_id": tokens.cls_token_id, "eos_token_id": tokens.eos_token_id}
    GPT2LMHeadModel(GPT2Config(**own, n_embd=32, n_layer=1, n_head=2)).save_pretrained(work / "gpt")


def _environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    return folder


def _install(environment: Path, what: str) -> None:
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    tested = ["--constraint", str(ROOT / "tools" / "tested.txt")]
    subprocess.run([*pip, *tested, what], check=True, env=_variables())


def _check(environment: Path, work: Path, expected: Expected, hub: str | None = None) -> None:
    command = [str(environment / "bin" / expected.words[0]), *expected.words[1:]]
    variables = _variables()
    if hub:
        variables |= {"HF_ENDPOINT": hub, "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0", "HF_HOME": str(work / "hub")}
        variables |= {"HF_HUB_DISABLE_XET": "1"}  # the server does not speak it
    done = subprocess.run(command, cwd=work, env=variables, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != expected.code or expected.says not in done.stdout + done.stderr:
        sys.exit(
            f"{shlex.join(expected.words)}\nended with {done.returncode}, not {expected.code} and {expected.says!r}:\n"
            f"{done.stdout}{done.stderr}"
        )


def _variables() -> dict[str, str]:
    """The environment without what would lead back to the checkout, and without a network for the Hub's client."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    offline = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}
    return kept | offline | {"COLUMNS": "80", "CUDA_VISIBLE_DEVICES": ""}


def _say(began: float, words: str) -> None:
    print(f"{time.monotonic() - began:4.0f} s  {words}", flush=True)


if __name__ == "__main__":
    main()
