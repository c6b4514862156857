"""Trained models that ship with the package: small, checked, and usable without a network.

`zoo.json` lists the training of each, its accuracy, and the SHA-256 of its weights. A model in half precision gave the
same answers in float32; `rounded` says on which problems that was checked (`benchmarks/add_to_zoo.py --half`).

`looks/` holds recorded decodes of models that take a CPU many seconds for a problem or are too large to ship. The
Countdown and Sudoku models had a quarter of the steps; the weights of Countdown's were rounded to bfloat16. These
commands made them, each with `--policies top1 ORDER --traces DIR`, where ORDER is the task's logical order; only the
name of the maze model was then changed.

    hardtail eval runs/maze-papl-s42 --strata 'corridor>=30' -n 20 --steps 40 --data-seed 42
    hardtail eval runs/countdown-puma-quarter-s42 --strata 'heldout=1,m>=11' -n 12 --data-seed 7
    hardtail eval runs/sudoku-random-quarter-s42 --strata tier=medium -n 10 --data-seed 7
    hardtail eval zoo:listops-random --strata 'depth=3' -n 12 --data-seed 7
"""

from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from msgspec import Struct, structs

from hardtail.core.errors import HardtailError
from hardtail.core.files import file_hash
from hardtail.core.manifest import Count
from hardtail.core.records import Share, read_json
from hardtail.core.trace_files import load_trace
from hardtail.core.types import Trace

FOLDER = Path(__file__).parent
LOOKS = FOLDER / "looks"
Half = Literal["float16", "bfloat16"]
"""The types of half precision."""


class Rounded(Struct, frozen=True, kw_only=True):
    """How the weights of a run were rounded before they were shipped, and what showed that no answer changes."""

    to: Half
    strata: tuple[str, ...]
    policies: tuple[str, ...]
    n: Count
    """Problems of each stratum that every policy decoded to the same answers with both."""
    sha256: str
    """Of the float32 weights, which older records of models that were trained from it name."""


class Listed(Struct, frozen=True, kw_only=True):
    """What the zoo lists for a model."""

    run: str
    """The run in `results/` that it comes from."""
    task: str
    scheme: str = ""
    """What it was trained with, in a few words."""
    kind: str
    """Which of the run's weights: `last` or `best_probe`."""
    about: str
    accuracy: dict[str, dict[str, Share]]
    """Exact match by stratum and policy, as recorded for the instances of the run's own seed."""
    n: dict[str, dict[str, Count]]
    """Over how many instances each of these is."""
    decode_precision: str
    """In which precision they were decoded."""
    licence: str
    sha256: str
    rounded: Rounded | None = None


class Model(Listed, frozen=True, kw_only=True):
    """One model of the zoo."""

    name: str

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.safetensors"


def models() -> list[Model]:
    """All models, as `zoo.json` lists them."""
    path = FOLDER / "zoo.json"
    try:
        listed = read_json(path, dict[str, Listed]) or {}
    except HardtailError as error:
        raise HardtailError(f"{path} is not the file that was shipped ({error}); install hardtail again") from error
    return [Model(name=name, **structs.asdict(entry)) for name, entry in listed.items()]


def find(name: str) -> Model:
    """A model by its name, its weights verified."""
    known = {model.name: model for model in models()}
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise HardtailError(f"the zoo has no model {name!r}; {hint}it has {', '.join(known)}")
    model = known[name]
    if not model.path.exists():
        raise HardtailError(f"{model.path} is missing; install hardtail again")
    if file_hash(model.path) != model.sha256:
        raise HardtailError(f"{model.path} is not the file that was shipped (the checksums differ); install it again")
    return model


def looks() -> list[Trace]:
    """The recorded decodes: of each problem one by confidence and one in the task's logical order."""
    return [load_trace(path) for path in sorted(LOOKS.glob("*.npz"))]
