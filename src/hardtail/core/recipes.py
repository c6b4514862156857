"""The recipe of a run as `recipe.json` and the header of weights hold it: one model for all that read it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from hardtail.core.describe import short_name
from hardtail.core.errors import HardtailError
from hardtail.core.manifest import Seed
from hardtail.core.parsing import converted
from hardtail.core.pretrained import HF, Pretrained
from hardtail.core.records import Positive, read_json
from hardtail.core.registry import SCHEMES

RECIPE = "recipe.json"
Kind = Literal["last", "best_probe"]


class _WatchFields(Struct, frozen=True):
    order: str | None = None


class _Watch(Struct, frozen=True):
    fields: _WatchFields


class _Scheme(Struct, frozen=True, rename={"kind": "class"}):
    kind: str


class _Model(Struct, frozen=True):
    fields: Pretrained


class RecipeFields(Struct, frozen=True, kw_only=True):
    """The fields of a recipe that its readers need."""

    task: dict[str, Any]
    """As `tasks.named` writes it."""
    scheme: _Scheme | None = None
    seed: Seed | None = None
    """The weights of a model that a user saved may lack this and what follows."""
    steps: Positive | None = None
    name: str = ""
    selection: Kind = "best_probe"
    watch: _Watch | None = None
    model: _Model | None = None

    @property
    def pretrained(self) -> Pretrained | None:
        """The model of another project that training begins with, if it does."""
        return self.model.fields if self.model else None

    @property
    def scheme_name(self) -> str:
        """The registered name of the training scheme; of another one its class; empty if the recipe does not say."""
        if self.scheme is None:
            return ""
        own = short_name(self.scheme.kind)
        return next((name for name, path in SCHEMES.paths().items() if short_name(path) == own), own)

    @property
    def order(self) -> str | None:
        """The logical order that training counted mask states by."""
        return self.watch.fields.order if self.watch else None


class _Recipe(Struct, frozen=True):
    fields: RecipeFields


@dataclass(frozen=True)
class RecipeFile:
    """A recipe that was read from a file."""

    described: dict[str, Any]
    """All of it as JSON, to compare with another."""
    fields: RecipeFields

    @classmethod
    def of(cls, described: dict[str, Any], where: str) -> "RecipeFile":
        """Check a description; errors start with `where` it is from."""
        return cls(described, converted(described, _Recipe, where).fields)


def read_recipe(folder: Path) -> RecipeFile | None:
    """The recipe of a run directory; None if there is none."""
    path = folder / RECIPE
    described = read_json(path, dict[str, Any])
    return None if described is None else RecipeFile.of(described, str(path))


def recipe_of(folder: Path) -> RecipeFile:
    """The recipe of a folder that must be a run directory."""
    if (recipe := read_recipe(folder)) is None:
        what = "give one that `hardtail train` wrote"
        if (folder / "config.json").exists():
            what += f", or {HF}{folder} if `transformers` saved it"
        elif any(folder.glob("*.npz")):
            what = f"name its traces, {folder}/*.npz"
        raise HardtailError(f"{folder} is not a run directory: it has no {RECIPE}; {what}")
    return recipe
