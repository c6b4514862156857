"""The one place that calls the parser: what it refuses is told as every other mistake is."""

import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from io import StringIO

import tyro
from tyro.conf import FlagCreatePairsOff

from hardtail.cli.options import RULES
from hardtail.core.errors import HardtailError

Call = Callable[[], None]
"""A command with what it was given, to be called once the parser is done."""
NARROWEST = 36
"""Letters that a line of the parser's box has room for on the narrowest terminal."""
_LACKS_A_WORD = re.compile(r"missing: (?!-)|(?!-)\S+ needs a value;")
"""What is said where a word without a dash is missing."""
_VALUES = re.compile(r"missing value for argument '(.*)'\. Expected (\d+) values")
_COLOUR = re.compile("\x1b\\[[0-9;]*m")


def parsed(command: Callable[..., Call], words: Sequence[str], prog: str, description: str | None = None) -> Call:
    """What `command` returns for these words; raise HardtailError if it does not take them."""
    said = StringIO()
    try:
        with redirect_stderr(said):
            return tyro.cli(
                command,
                args=words,
                prog=prog,
                description=description,
                config=(FlagCreatePairsOff,),
                registry=RULES,
            )
    except SystemExit as stop:
        if not stop.code:  # it has printed help
            raise
        sentence = _unbroken(_sentence(said.getvalue()), words)
        if words and words[0].startswith("-") and _LACKS_A_WORD.match(sentence):
            sentence += " write it before all options;"
        raise HardtailError(f"{sentence} `{prog} --help` has more") from None


def _sentence(box: str) -> str:
    """What the parser says in a box: its first part, and the names of similar options from later ones.

    The frame takes two columns on the left, in letters that depend on the encoding of standard output.
    """
    parts: list[list[str]] = [[]]
    for line in _COLOUR.sub("", box).splitlines()[1:]:  # the first is the title
        inside = line[2:].rstrip(" │╯")
        if inside.strip("─-"):
            parts[-1].append(inside)
        else:  # a rule
            parts.append([])
    first, *others = [part for part in parts if part] or [[box.strip()]]
    told = " ".join(line for line in first if not line.startswith(" ")).removeprefix("Error parsing ").rstrip(".")
    told = _VALUES.sub(_needs, told[:1].lower() + told[1:]).replace(". Expected ", "; expected ")
    told = re.sub("^missing from [^:]+:", "missing:", told)
    items = (f"{name} ({help})" if help else name for name, help in _items(first).items())
    similar = [name for part in others if part[0].startswith(("Perhaps", "Arguments similar")) for name in _items(part)]
    said = " ".join(filter(None, (told, ", ".join(items))))
    said = said.replace("unrecognized options:", "not understood:", 1)  # they may be words, such as a second model
    return f"{said}; did you mean {' or '.join(sorted(similar))}?" if similar else f"{said};"


def _unbroken(sentence: str, words: Sequence[str]) -> str:
    """The sentence with these words as they were given: the box breaks those that are longer than its lines."""
    for word in words:
        if len(word) >= NARROWEST:
            sentence = re.sub(" ?".join(map(re.escape, word)), word.replace("\\", r"\\"), sentence)
    return sentence


def _needs(match: re.Match[str]) -> str:
    option, count = match.groups()
    return f"{option} needs {'a value' if count == '1' else f'{count} values'}"


def _items(lines: Sequence[str]) -> dict[str, str]:
    """The options that some lines list, which are indented, with the help below each, which is more so."""
    found: dict[str, str] = {}
    for line in lines:
        if line.startswith(8 * " ") and found:
            name, help = found.popitem()
            found[name] = f"{help} {line.strip()}".strip().removesuffix("(required)").rstrip()
        elif line.startswith(4 * " "):
            found[line.strip()] = ""
    return found
