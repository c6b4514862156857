"""The command line: reads arguments and prints, no logic."""

import signal
import sys
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from typing import NoReturn

from hardtail.cli.commands import app
from hardtail.cli.measure import numbered_gallery
from hardtail.core.errors import HardtailError, refused
from hardtail.core.files import LONGEST_LINE
from hardtail.core.registry import SEARCHED
from hardtail.core.terminal import guard, screens, shortened, wrapped

for _module in (
    "diagnose",
    "show",
    "compare",
    "view",
    "report",
    "canvases",
    "data",
    "push",
    "study",
    "zoo",
    "claims",
):  # the order of the help
    import_module(f"hardtail.cli.{_module}")  # it registers its commands


@app.command(guarded=False)
def train() -> None:
    """Train a recipe: `hardtail train RECIPE [any field as a flag]`; without RECIPE, list the recipes."""
    words = sys.argv[2:]
    if not words or words[0] in ("-h", "--help"):
        from hardtail.cli.recipes import list_recipes

        list_recipes()
        return
    from hardtail.cli.train import main as train_main

    train_main(words)


@app.command(name="lm-eval", guarded=False)
def lm_eval() -> None:
    """Run the lm-evaluation-harness with our tasks and models; `write DIR` writes the tasks as files for it."""
    from hardtail.cli.lm_eval import main as lm_eval_main

    lm_eval_main(sys.argv[2:])


def _own_words(words: list[str]) -> list[str]:
    """Return the words for the parser; `train` parses its own, because its flags depend on the recipe, and so does
    another program's command."""
    if words and words[0] in ("train", "lm-eval"):
        return words[:1]
    if not words or words[0] in ("-h", "--help"):
        return ["--help"]
    if {"-h", "--help"} & set(words[1:]):
        return [words[0], "--help"]  # after other words, the parser's help would leave out what they have given
    return numbered_gallery(words)


def _folders(words: list[str]) -> tuple[list[str], list[str]]:
    """The folders that `--path` names, and the remaining words."""
    rest = [part for word in words for part in (word.split("=", 1) if word.startswith("--path=") else [word])]
    found: list[str] = []
    while "--path" in rest:
        at = rest.index("--path")
        if at + 1 == len(rest) or not Path(rest[at + 1]).is_dir():
            raise HardtailError(f"--path {' '.join(rest[at + 1 : at + 2])}: give a folder with your own modules")
        found.append(str(Path(rest[at + 1]).absolute()))
        del rest[at : at + 2]
    return found, rest


def _quit(sentence: str, code: int) -> NoReturn:
    guard()
    told = f"hardtail: {shortened(sentence)}"
    print(wrapped(told, get_terminal_size().columns) if sys.stderr.isatty() else told, file=sys.stderr)
    sys.exit(code)


def main() -> None:
    """Entry point: report a user's mistake in one sentence and exit with code 2."""
    from hardtail.core.version import __version__

    if sys.argv[1:] == ["--version"]:
        print(f"hardtail {__version__}")
        return
    with screens():
        _main()


def _main() -> None:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # an exit cleans up
    try:
        if (
            longest := max(map(len, sys.argv[1:]), default=0)
        ) > LONGEST_LINE:  # the parser takes seconds for such a word
            raise HardtailError(f"a word has {longest:,} characters; give long problems in a file")
        folders, sys.argv[1:] = _folders(sys.argv[1:])
        SEARCHED[:] = [*folders, str(Path.cwd())]  # for a user's own classes, such as `my_policies:MyPolicy`
        app.cli(
            prog="hardtail",
            description="See where a masked diffusion model commits too early: train, decode in any order, explain.\n\n"
            "Your own package.module:NAME is looked for in the current folder and, with --path DIR, in DIR.",
            args=_own_words(sys.argv[1:]),
        )
        sys.stdout.flush()
    except HardtailError as error:
        _quit(str(error), 2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except KeyboardInterrupt:
        _quit("stopped; no file was left half-written", 130)
    except MemoryError:
        _quit("there is not enough memory for that; ask for less at a time", 2)
    except RuntimeError as error:
        if "can't allocate memory" in str(error):  # torch's own, on a CPU
            _quit("there is not enough memory for that; ask for less at a time", 2)
        if type(error).__name__ != "OutOfMemoryError":  # and on a GPU; torch is not imported for every command
            raise
        _quit("there is not enough memory on the GPU for that; give a smaller batch, or --device cpu", 2)
    except OSError as error:
        _quit(refused(error), 2)
