"""For the API reference: lines of a docstring that describe arguments or fields become a list.

We write them as a name in backquotes, two spaces and words, which is a table in a terminal and would run together on a
page. An extension of griffe (`mkdocs.yml`).
"""

import re
from typing import Any

import griffe

_NAME = re.compile(r"^((?:`[^`\n]+`(?:, )?)+) {2,}", flags=re.MULTILINE)
LIST_ITEM = r"- \1: "


class Lists(griffe.Extension):  # type: ignore[misc]
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_lists(obj.docstring.value)


def as_lists(text: str) -> str:
    """A docstring with a list item in place of every line that begins with a name and two spaces."""
    found = _NAME.search(text)
    if found is None:
        return text
    before = text[: found.start()].rstrip()
    return f"{before}\n\n{_NAME.sub(LIST_ITEM, text[found.start() :])}"
