"""The colours of the page, figures and terminal: Okabe and Ito's palette, safe for colour-blind readers."""

from collections.abc import Sequence

SCHEME_COLOURS = {
    "papl5": "#cc79a7",
    "papl": "#e69f00",
    "puma": "#009e73",
    "mixture": "#d55e00",
    "oracle": "#56b4e9",
    "random": "#0072b2",
}
SCHEME_TITLES = {"random": "Random", "papl": "PAPL", "puma": "PUMA", "papl5": "PAPL α=5"}
"""What legends call the training schemes. PAPL's α is 1 on addition and 5 on the other tasks."""
OTHER_COLOURS = ("#56b4e9", "#cc79a7", "#d55e00", "#8c8c8c", "#0072b2", "#e69f00", "#009e73")
STEP_RAMP = ((18, 64, 128), (38, 110, 175), (96, 160, 208), (162, 203, 231), (219, 234, 246))
"""From a decode's first commit, dark, to its last, light: red, green, blue."""
WHITE_UNTIL = 0.35
"""Up to this part of the ramp white letters are easier to read on it than dark ones."""


def scheme_in(name: str) -> str | None:
    """The training scheme that a run, an arm or a model is named after."""
    return next((scheme for scheme in SCHEME_COLOURS if scheme in name.lower()), None)


def colours(names: Sequence[str]) -> dict[str, str]:
    """A training scheme has its colour everywhere; any other name gets the next free one, or a shade of one."""
    known = {name: SCHEME_COLOURS[found] for name in names if (found := scheme_in(name))}
    free_first = sorted(OTHER_COLOURS, key=lambda colour: colour in known.values())
    others = [name for name in dict.fromkeys(names) if name not in known]
    places = ((name, *divmod(place, len(free_first))) for place, name in enumerate(others))
    return known | {name: shaded(free_first[place], again) for name, again, place in places}


def shaded(colour: str, place: int) -> str:
    """A colour of the same hue: the colour itself, then alternately darker and lighter ones."""
    share = 1 - 0.72 ** ((place + 1) // 2)
    towards = 0 if place % 2 else 255
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + (towards - part) * share):02x}" for part in parts)


def schemes(models: Sequence[str]) -> dict[str, str]:
    """The training scheme that each model is named after; the model's own name if it has none or shares it."""
    found = {name: scheme_in(name) for name in models}
    count = list(found.values()).count
    return {name: scheme if scheme and count(scheme) == 1 else name for name, scheme in found.items()}


def titles(hues: Sequence[str]) -> dict[str, str]:
    """What a legend calls each of these schemes or models."""
    return {hue: SCHEME_TITLES.get(hue, hue) for hue in hues}
