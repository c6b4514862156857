"""A model of another project, as recipes and records name it."""

from dataclasses import dataclass

from hardtail.core.fields import Checked

PREFIX = "hf:"
TEMPLATE = "{prompt}{answer}"


@dataclass(frozen=True)
class Pretrained(Checked):
    """Which model it is, and the text around the problems that it reads."""

    name: str
    """`hf:` and a folder that `transformers` saved, or a name on the Hub."""
    sha256: str
    """Of its configuration, tokenizer and weights."""
    template: str = TEMPLATE
