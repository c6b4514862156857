"""Every reference in the documentation resolves: sections of the study, links, anchors and module paths."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from hardtail.core.registry import TASKS
from hardtail.tasks.reading import problems

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SOURCES = [
    path
    for folder in ("src", "docs", "tests", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".md", ".toml", ".js"} and path != Path(__file__)
]
HEADING = re.compile(r"^#{1,6} (.+)$", flags=re.MULTILINE)
CITATION = re.compile(r"study\.md((?:[\s,;#–]|and|to|§[\d.]*\d)*§[\d.]*\d)")
BARE = re.compile(r"\bstudy(?:'s)?,? (?:section )?§", flags=re.IGNORECASE)


def prose(path: Path) -> str:
    """The page without its code blocks."""
    return re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = HEADING.findall(prose(path))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_problems_that_the_page_about_tasks_shows_are_read() -> None:
    page = (ROOT / "docs" / "tasks.md").read_text().partition("## Problems as text")[2].partition("\n## ")[0]
    shown = re.findall(r"^\| (\w+) \| `([^`]+)` \|", page, flags=re.MULTILINE)
    assert [name for name, _ in shown] == TASKS.names()
    for name, problem in shown:
        (solved,) = problems(TASKS.load(name).preset(None), problem, fit=True)
        assert solved.task.name == name


def test_sections_of_the_study_exist() -> None:
    sections = {heading.split()[0] for heading in HEADING.findall(prose(ROOT / "docs" / "study.md"))}
    cited = {
        (section, path.relative_to(ROOT))
        for path in SOURCES
        for citation in CITATION.findall(path.read_text())
        for section in re.findall(r"§([\d.]*\d)", citation)
    }
    cited |= {
        (section, Path("docs/study.md")) for section in re.findall(r"§([\d.]*\d)", prose(ROOT / "docs" / "study.md"))
    }
    assert len(cited) > 40
    assert not {(section, path) for section, path in cited if section not in sections}


def test_sections_of_the_study_are_cited_with_their_page() -> None:
    """Write `docs/study.md §1.5`, so that a reader finds it."""
    assert not [str(path.relative_to(ROOT)) for path in SOURCES if BARE.search(path.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_resolve(page: Path) -> None:
    text = prose(page)
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'<img src="([^"]+)"', text)
    for link in links:
        if link.startswith(("http://", "https://")):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name} links to {link}, which does not exist"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {link}, but there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_module_paths_exist(page: Path) -> None:
    """`hardtail.x.y` names a module, or something in one; `x/y.py` in backticks is a file of the repository."""
    text = page.read_text()
    for name in sorted(set(re.findall(r"(?<![\w./-])hardtail(?:\.\w+)+", text))):
        assert resolves(name), f"{page.name} names {name}, which does not exist"
    for name in sorted(set(re.findall(r"`([a-z_]+(?:/[\w-]+)*/[\w-]+\.(?:py|js|toml))`", text))):
        places = [ROOT / name, ROOT / "src" / "hardtail" / name]
        assert any(place.exists() for place in places), f"{page.name} names {name}, which does not exist"


def resolves(name: str) -> bool:
    """Whether `name` is a module, an attribute of one, or a group of entry points."""
    if name in {f"hardtail.{kind}" for kind in ("tasks", "schemes", "policies", "recipes", "claims", "models")}:
        return True
    module, _, attribute = name.rpartition(".")
    if _is_module(name):
        return True
    return _is_module(module) and hasattr(__import__(module, fromlist=[attribute]), attribute)


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
