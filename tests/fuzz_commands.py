"""Lines that people type, as doors. `hardtail WORDS` runs in this process, so that thousands are tried."""

import contextlib
import io
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from unittest.mock import patch

from hardtail import HardtailError, cli
from tests.fuzz_doors import Door, written
from tests.fuzz_inputs import damaged_text

UNBOUNDED = ("-n", "--n", "--out", "--traces", "--latex", "--batch", "--compiled", "--results", "--device", "--steps")
"""Words that ask for any amount of work, or write where they are told."""
OFFLINE = "huggingface_hub.constants.HF_HUB_OFFLINE"
"""Without `--dry-run` a line would publish something."""
CANVASES = {"problems": ["123+456"], "mask": "_", "canvases": [["__79"], ["0579"]]}


def command_doors(folder: Path) -> list[Door]:
    """The files that the lines name are those of other doors, which must be made before; all are below `folder`."""
    run, trace, data = str(folder / "run"), str(folder / "trace.npz"), str(folder / "data.npz")
    problems, packed, claims = str(folder / "problems.txt"), str(folder / "packed"), str(folder / "claims.toml")
    others = written(folder / "others.json", json.dumps(CANVASES).encode())
    quick = [
        ["sample", "addition", "--stratum", "chain>=3", "--set", "digits=8"],
        ["sample", "listops", "--preset", "paper", "--seed", "3", "--json"],
        ["solve", "countdown", "86,28,13,31,96", "--json"],
        ["check", "listops", "[X 3 [N 2 5] 7]", "37"],
        ["solve", "addition", "12+34=", "--set", "digits=2"],
        ["inspect", data, "--json"],
        ["view", trace, "--instance", "1"],
        ["diagnose", trace, "--json"],
        ["import", str(others), "--task", "addition,digits=3"],
        ["push", data, "hf:me/try", "--licence", "mit", "--dry-run"],
        ["zoo", "addition-random", "--json"],
        ["policies"],
        ["tasks"],
    ]
    decoding = [
        ["train", "addition-random-smoke", "--scheme", "papl,alpha=5", "--batch", "4", "--dry-run"],
        ["eval", run, "--data", problems, "--policies", "top1", "threshold,p=0.9", "check,rounds=1", "--json"],
        ["eval", run, "--data", data, "--strata", "natural", "--policy", "block,size=2", "--each", "2", "--trust"],
        ["view", run, "--policy", "klass,p=0.9", "--stratum", "chain>=2", "--data-seed", "1"],
        ["compare", trace, trace],
        ["push", run, "hf:me/try", "--message", "first", "--dry-run"],
        [
            "eval",
            f"hf:{folder / 'hf'}",
            "--task",
            "addition,digits=4",
            "--data",
            data,
            "--template",
            "{prompt}{answer}",
        ],
        ["study", "plan", "addition-small", "--runs", str(folder / "runs")],
        ["study", "unpack", packed, "--runs", str(folder / "runs")],
        ["claims", "addition.puma.lower", "--json"],
        ["claims", "--source", claims, "--markdown"],
    ]

    def draw(rng: Random, lines: Sequence[list[str]]) -> list[str]:
        words = list(rng.choice(lines))
        at = rng.randrange(len(words))
        if (fault := rng.random()) < 0.1:
            del words[at]
        elif fault < 0.2:
            words.insert(at, rng.choice(rng.choice(lines)))
        else:
            words[at] = damaged_text(words[at], rng, [word for line in lines for word in line])
        return [word for word in words if not word.startswith(UNBOUNDED)]

    return [
        Door("command line", quick[0], lambda rng: draw(rng, quick), typed, 2),
        Door("command line that decodes", decoding[-2], lambda rng: draw(rng, decoding), typed, 0.5),
    ]


def typed(words: Sequence[str]) -> None:
    """`hardtail WORDS`; exit codes are those of a sentence, an answer that is not valid, or nothing wrong."""
    before = sys.argv, sys.stdin, list(sys.path), signal.getsignal(signal.SIGTERM)
    sys.argv, sys.stdin = ["hardtail", *words], io.TextIOWrapper(io.BytesIO())
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), patch(OFFLINE, True):
            cli.main()
    except SystemExit as stop:
        if stop.code not in (None, 0, 1, 2):
            raise ValueError(f"exit code {stop.code}") from None
        if "Traceback" in err.getvalue() or (stop.code == 2 and not err.getvalue().strip()):
            raise ValueError("a stack trace, or not a word") from None
        if stop.code == 2:
            raise HardtailError(err.getvalue()) from None
    finally:
        sys.argv, sys.stdin, sys.path[:] = before[:3]
        signal.signal(signal.SIGTERM, before[3])
    if "\x1b" in out.getvalue() + err.getvalue():
        raise ValueError("an escape sequence reached the screen")
