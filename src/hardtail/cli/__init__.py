"""The command line: reads arguments and prints, no logic."""

import signal
import sys
from importlib import import_module
from typing import NoReturn

from tyro.conf import FlagCreatePairsOff

from hardtail.cli.common import app
from hardtail.cli.measure import numbered_gallery
from hardtail.cli.options import OPTIONAL
from hardtail.core.errors import HardtailError

for _module in ("show", "measure", "compare", "view", "report", "data", "study", "claims"):  # the order of the help
    import_module(f"hardtail.cli.{_module}")  # it registers its commands


@app.command
def train() -> None:
    """Train a recipe: `hardtail train RECIPE [any field as a flag]`; without RECIPE, list the recipes."""
    words = sys.argv[2:]
    if not words or words[0] in ("-h", "--help"):
        from hardtail.cli.recipes import list_recipes

        list_recipes()
        return
    from hardtail.cli.train import main as train_main

    train_main(words)


def _own_words(words: list[str]) -> list[str]:
    """Return the words for the parser; `train` parses its own, because its flags depend on the recipe."""
    if words and words[0] == "train":
        return words[:1]
    return numbered_gallery(words) if words else ["--help"]


def _quit(sentence: str, code: int) -> NoReturn:
    print(f"hardtail: {sentence}", file=sys.stderr)
    sys.exit(code)


def main() -> None:
    """Entry point: report a user's mistake in one sentence and exit with code 2."""
    from hardtail.core.version import __version__

    if sys.argv[1:] == ["--version"]:
        print(f"hardtail {__version__}")
        return
    sys.path.append("")  # a user's own classes in the current folder, as `my_policies:MyPolicy`
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # an exit cleans up
    try:
        app.cli(
            prog="hardtail",
            description="See where a masked diffusion model commits too early: train, decode in any order, explain.",
            args=_own_words(sys.argv[1:]),
            config=(FlagCreatePairsOff,),
            registry=OPTIONAL,
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
        _quit(f"{error.filename or 'the file system'}: {error.strerror or error}", 2)
