"""A model that training begins with, as recipes and records name it."""

import re
from dataclasses import dataclass, replace
from pathlib import PurePath

from hardtail.core.fields import Checked

HF = "hf:"
ZOO = "zoo:"
TEMPLATE = "{prompt}{answer}"
_AT_COMMIT = re.compile(r"@[0-9a-f]{40}$")


@dataclass(frozen=True)
class Pretrained(Checked):
    """Which model it is, and the text around the problems that it reads."""

    name: str
    """`hf:` and a folder that `transformers` saved, or a name on the Hub with its commit; or `zoo:` and a name."""
    sha256: str
    """Of its configuration, tokenizer, code and weights; in the zoo, of its file."""
    template: str = TEMPLATE

    @property
    def shipped(self) -> bool:
        """Whether it is a model of the zoo."""
        return self.name.startswith(ZOO)

    @property
    def published(self) -> "Pretrained":
        """The same for everyone to read: of a folder, only its own name."""
        if self.shipped or _AT_COMMIT.search(self.name):
            return self
        return replace(self, name=f"{HF}{PurePath(self.name.removeprefix(HF)).name}")
