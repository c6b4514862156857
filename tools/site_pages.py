"""What the documentation site has in addition to `docs/`: the README and its neighbours, and the API reference.

A hook of mkdocs (`mkdocs.yml`). The pages stay as they are for readers of the repository; links between them are
rewritten here, and links to files that the site does not have become plain text.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
API = {
    "The front door": ("What `import hardtail as ht` offers.", ["hardtail.task"]),
    "Models": ("", ["hardtail.api.models.load", "hardtail.api.models.evaluate", "hardtail.api.models.decode"]),
    "Traces": ("", ["hardtail.api.traces.diagnose", "hardtail.api.traces.report", "hardtail.api.traces.load_trace"]),
    "The Hub": ("", ["hardtail.api.hub.push"]),
    "Results": ("", ["hardtail.api.results.Evaluation", "hardtail.api.results.Explanation"]),
    "Data": (
        "",
        [
            "hardtail.core.types.Instances",
            "hardtail.core.types.Trace",
            "hardtail.core.files.load_instances",
            "hardtail.core.files.save_instances",
            "hardtail.core.seeds.Streams",
            "hardtail.core.seeds.Stream",
            "hardtail.core.errors.HardtailError",
        ],
    ),
    "Your own classes": (
        "What [bring your own](bring-your-own.md) is about.",
        [
            "hardtail.tasks.base.Task",
            "hardtail.schemes.base.Scheme",
            "hardtail.policies.base.Policy",
            "hardtail.models.denoiser.Denoiser",
            "hardtail.training.recipe.Recipe",
            "hardtail.testing.check_task",
            "hardtail.testing.check_scheme",
            "hardtail.testing.check_policy",
        ],
    ),
}
"""The sections of the API page: a sentence, and the objects whose docstrings it shows."""
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_IMAGE = re.compile(r'<img src="docs/')


def on_files(files: Files, config: Any) -> Files:
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    files.append(File.generated(config, "api.md", content=api_page()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    source = next((name for name, own in PAGES.items() if own == page.file.src_uri), None)
    folder = ROOT if source else ROOT / "docs"

    def rewritten(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if re.match(r"[a-z]+:", target):
            return match[0]
        path = (folder / target).resolve()
        if not path.exists():
            return match[0]  # mkdocs says that it is broken
        if path.is_relative_to(ROOT / "docs"):
            return f"[{text}]({path.relative_to(ROOT / 'docs')}{anchor})"
        own = PAGES.get(str(path.relative_to(ROOT)))
        return f"[{text}]({own}{anchor})" if own else text

    blocks = re.split(r"(```.*?```)", markdown, flags=re.DOTALL)  # code stays as it is
    return "".join(
        block if block.startswith("```") else _LINK.sub(rewritten, _IMAGE.sub('<img src="', block)) for block in blocks
    )


def api_page() -> str:
    parts = ["# API reference", "Everything here is documented where it is defined, and typed."]
    for title, (sentence, names) in API.items():
        parts += [f"## {title}", sentence, *(f"::: {name}" for name in names)]
    return "\n\n".join(part for part in parts if part) + "\n"
