"""What is shown: whether a program still prints what a page shows, where another processor may round differently; and
the words on a figure."""

import re
from typing import Any

NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]\d+)?(?: %)?")


def close(shown: str, printed: str) -> bool:
    """Shares and percentages differ by at most .05, counts by a tenth or 2, other numbers by a twentieth."""
    texts = [text.removesuffix(" %").replace(",", "") for text in (shown, printed)]
    one, other = map(float, texts)
    if shown.endswith("%"):
        return abs(one - other) <= 5
    if all(text.isdigit() for text in texts):
        return abs(one - other) <= max(0.1 * max(one, other), 2)
    return abs(one - other) <= 0.05 * max(one, other, 1)


def assert_shown(shown: str, printed: str) -> None:
    """Words are equal, numbers close."""
    assert NUMBER.sub("#", shown) == NUMBER.sub("#", printed)
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    assert not [pair for pair in pairs if not close(*pair)], printed


def words(figure: Any) -> str:
    """All text on a figure."""
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in figure.findobj(Text))
