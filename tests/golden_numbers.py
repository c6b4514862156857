"""The numbers that the packages name or assume: limits, tolerances, sizes, and what an argument is if nobody gives it;
and what records allow: to be changed, to be made without the names of their fields, to have fields that nobody knows.

python -m tests.golden_numbers    # record them anew, after a change that is meant to change one

Nothing of the packages is imported before `numbers` is called.
"""

import ast
import importlib
import inspect
import json
import math
import pkgutil
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

PATH = Path(__file__).parent / "golden" / "numbers.json"
PACKAGES = (
    *("core", "traces", "tasks", "models", "schemes", "policies", "decoding", "measuring", "training", "study"),
)
NOT_HERE = "models.kernels", "models.aside", "models.attended", "models.forward", "models.fused"
"""What needs a GPU's compiler."""
PICTURES = "tasks.addition.figures", "tasks.maze.figures", "tasks.sudoku.draw"
NOT_PINNED = {
    "decoding.loop": {"KEPT_LOOPS", "LOOK_EVERY", "WINDOW"},
    "decoding.sizes": {"CPU_BATCH", "GPU_BATCH", "TILE_TOKENS"},
    "decoding.workers": {"AHEAD", "REPORT_EVERY"},
    "measuring.influence": {"BATCH"},
    "measuring.loss_weights": {"BATCH"},
    "models.attention": {"HAS_TRITON", "HELD"},
    "models.packed": {"MOST_ROWS", "USUAL_TOKENS"},
    "policies.remask": {"LOOKS"},
    "study.cluster": {"JOBS_PER_PLACE"},
    "study.on_ray": {"LOOK_EVERY", "PAUSE", "POLL"},
    "tasks.reading": {"BLOCK"},
    "tasks.sudoku.task": {"_ROWS_AT_ONCE"},
    "training.probe": {"CHUNK"},
    "training.ranks": {"AGREE_EVERY"},
    "training.run": {"WORTH_SPLITTING"},
    "training.step": {"WARM_UP"},
}
"""By module: sizes of pieces, pauses, and what a machine has. They trade time for memory and may be tuned; other sizes
can round differently in the last bits, and nothing else depends on them."""


def numbers() -> dict[str, dict[str, Any]]:
    """For every module: its own constants, the defaults of its functions, and those of its classes' fields."""
    found: dict[str, dict[str, Any]] = {}
    for package in PACKAGES:
        folder = importlib.import_module(f"hardtail.{package}").__path__
        for item in pkgutil.walk_packages(folder, f"hardtail.{package}."):
            name = item.name.removeprefix("hardtail.")
            if not name.startswith((*NOT_HERE, *PICTURES)):
                held = dict(_of_module(importlib.import_module(item.name)))
                found |= {name: held} if held else {}
    return found


def _of_module(module: ModuleType) -> Iterator[tuple[str, Any]]:
    assert module.__file__
    tree = ast.parse(Path(module.__file__).read_bytes())
    targets = [target for line in tree.body if isinstance(line, ast.Assign) for target in line.targets]
    targets += [line.target for line in tree.body if isinstance(line, ast.AnnAssign)]
    targets += [part for target in targets if isinstance(target, ast.Tuple) for part in target.elts]
    left_out = NOT_PINNED.get(module.__name__.removeprefix("hardtail."), set())
    for name in (target.id for target in targets if isinstance(target, ast.Name)):
        if name not in left_out and not name.startswith("__"):
            yield from _if_number(name, vars(module)[name])
    for name, held in vars(module).items():
        if getattr(held, "__module__", "") != module.__name__:
            continue
        if inspect.isclass(held) and issubclass(held, Struct):
            yield f"{name} allows", _allowed(held)
        if name.startswith("_"):
            continue
        if inspect.isfunction(held):
            yield from _of_arguments(name, held)
        elif inspect.isclass(held):
            yield from _of_class(name, held)


def _of_class(name: str, kind: type) -> Iterator[tuple[str, Any]]:
    own = inspect.get_annotations(kind)
    defaults = dict(zip(*_struct_defaults(kind), strict=True))
    if is_dataclass(kind):
        defaults = {field.name: field.default for field in fields(kind) if field.default is not MISSING}
    for field, default in defaults.items():
        if field in own:
            yield from _if_number(f"{name}.{field}", default)
    for part, held in vars(kind).items():
        if inspect.isfunction(held) and not part.startswith("_"):
            yield from _of_arguments(f"{name}.{part}", held)
        elif part not in defaults and not part.startswith("_"):
            yield from _if_number(f"{name}.{part}", held)


def _allowed(kind: type[Struct]) -> list[str]:
    """What may be done with a record, and how it is written."""
    config = kind.__struct_config__
    named = all(field.kind is field.KEYWORD_ONLY for field in inspect.signature(kind).parameters.values())
    allowed = {
        "changes": not config.frozen,
        "fields without names": not named,
        "unknown fields": not config.forbid_unknown_fields,
        "defaults left out": config.omit_defaults,
    }
    return [what for what, is_so in allowed.items() if is_so]


def _struct_defaults(kind: type) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """The fields of a msgspec struct that have a default or come after one that has, and these defaults."""
    names, defaults = getattr(kind, "__struct_fields__", ()), getattr(kind, "__struct_defaults__", ())
    return names[len(names) - len(defaults) :], defaults


def _of_arguments(name: str, function: Any) -> Iterator[tuple[str, Any]]:
    for argument in inspect.signature(function).parameters.values():
        yield from _if_number(f"{name}({argument.name})", argument.default)


def _if_number(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _if_number(f"{name}[{key}]", inner)
        return
    every = value if isinstance(value, tuple) else (value,)
    if every and all(isinstance(number, bool | int | float) for number in every):
        plain = [str(number) if isinstance(number, float) and not math.isfinite(number) else number for number in every]
        yield name, plain if isinstance(value, tuple) else plain[0]


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(held)}" for name, held in sorted(numbers().items()))
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
