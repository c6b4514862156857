"""One HTML file with markup, style, program and data. It opens from disk and needs no network.

The program's ES modules in `web/` are joined into a single script, each as a function that returns its exports, because
a page opened from disk cannot load modules. A task's `scene.js` joins them and imports ours as `hardtail/NAME.js`. A
content policy allows only that script, by its hash.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic
from hardtail.show.charts.colours import STEP_RAMP, WHITE_UNTIL
from hardtail.tasks.parts import Scene

SCRIPTS = (
    *("dom", "data", "address", "colours", "chart", "curves", "ledger", "study", "replay", "tiles", "scenes"),
    *("explain", "pane", "picture", "player", "overview", "choice", "controls", "theatre", "main"),
)
"""The modules of `web/`, each after those it imports; the tasks' scenes come after `scenes`."""
STYLES = ("theme", "story", "study", "chart", "theatre", "scene", "phone", "print")
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "(?:\.|hardtail)/(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


def refuse_odd_name(path: Path) -> None:
    """Refuse a path that cannot be a page's, before work is spent on it."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise HardtailError(f"{path}: the name of a page must end in .html")
    if path.is_dir():
        raise HardtailError(f"{path} is a folder; give the name of a file")
    if path.is_file():
        with path.open("rb") as file:
            if (start := file.read(2000)) and b"hardtail" not in start:
                raise HardtailError(f"{path} is a page of something else; give another name, or remove it")


def write_page(path: Path, content: Mapping[str, Any], arrays: str) -> int:
    """Write the page and return its size in bytes; an old file at `path` stays until the new page is complete."""
    refuse_odd_name(path)
    page = page_of(content, arrays).encode()
    with atomic(path) as file:
        file.write(page)
    return len(page)


def page_of(content: Mapping[str, Any], arrays: str) -> str:
    """The page's text: `content` is its JSON, with the scenes of its tasks; `arrays` is the text of `PackedArrays`."""
    content = dict(content)
    scenes = [Scene(*held) for held in content.pop("scenes", ())]
    program = bundle([scene.script for scene in scenes])
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    shades = ", ".join("rgb({} {} {})".format(*shade) for shade in STEP_RAMP)
    styles = [*(_text(f"{name}.css") for name in STYLES), *(scene.style for scene in scenes)]
    inert = json.dumps(content, allow_nan=False, ensure_ascii=True)  # no HTML parser may take its text for markup
    filled = {
        "title": escape(str(content.get("title", "hardtail")), quote=False),
        "policy": f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; base-uri 'none'",
        "style": "".join([f":root {{\n  --step-ramp: {shades};\n}}\n", *styles]),
        "content": inert.replace("<", "\\u003c").replace(">", "\\u003e"),
        "arrays": arrays,
        "program": program,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: filled[match[1]], _text("page.html"))


def bundle(scenes: Sequence[str]) -> str:
    """Join the page's ES modules and the tasks' scenes into one script, after the palette shared with Python."""
    palette = {"STEP_RAMP": STEP_RAMP, "WHITE_UNTIL": WHITE_UNTIL}
    texts = {"palette": "".join(f"export const {name} = {json.dumps(held)};\n" for name, held in palette.items())}
    texts |= {name: _text(f"{name}.js") for name in SCRIPTS}
    modules = {name: _as_function(text, f"const from_{name} = ") for name, text in texts.items()}
    modules["scenes"] += "".join(map(_as_function, scenes))
    return "\n".join(modules.values()).replace("</script", "<\\/script")


def _as_function(module: str, assigned: str = "") -> str:
    exports = ", ".join(_EXPORT.findall(module))
    body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = from_\2;", module))
    return f"{assigned}(() => {{\n{body}return {{ {exports} }};\n}})();\n"


def _text(name: str) -> str:
    return files("hardtail.show.page").joinpath("web", name).read_text(encoding="utf-8")
