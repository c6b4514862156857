"""Schemes by name, as the command line writes them: `random`, `papl,alpha=5`, `my_package.module:MyScheme`."""

from hardtail.core.fields import configured
from hardtail.core.registry import SCHEMES
from hardtail.schemes.base import Scheme


def scheme_named(text: str) -> Scheme:
    """The scheme that `text` names: a registered one or `package.module:Class`; fields follow after commas."""
    name, *words = (part.strip() for part in text.split(","))
    return configured(SCHEMES.load(name), words, name)
