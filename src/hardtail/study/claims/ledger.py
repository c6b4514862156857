"""The whole ledger: all claims, judged, as tables and as JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.core.registry import Registry
from hardtail.core.tables import Table
from hardtail.study.claims.base import Cell, Claim, Judged, Verdict
from hardtail.study.claims.combined import Combined
from hardtail.study.claims.evidence import Estimate, Results, Sample, why_left_out
from hardtail.study.claims.figures import Figure, ShareRight
from hardtail.study.claims.source import Paper, Source
from hardtail.study.claims.source_file import read_source

PAPER = "confidence-shortcut"
"""The source that is judged if no other is named."""
SOURCES: Registry[Source] = Registry(
    "claims source",
    "hardtail.claims",
    {PAPER: "hardtail.study.claims.confidence_shortcut:SOURCE", "ours": "hardtail.study.claims.ours:SOURCE"},
    lambda found: None if isinstance(found, Source) else "it must be a Source of hardtail.study.claims.source",
)
FILES = Path(__file__).parent / "sources"


def source_names() -> list[str]:
    return [*SOURCES.names(), *sorted(path.stem for path in FILES.glob("*.toml"))]


def source_named(name: str) -> Source:
    """A source by its name, by `package.module:NAME`, or from a `.toml` file."""
    own = FILES / f"{name}.toml"
    if name.endswith(".toml") or own.is_file():
        return read_source(Path(name) if name.endswith(".toml") else own)
    if name not in SOURCES.names() and ":" not in name:
        known = f"choose from {', '.join(source_names())}, or give a file that ends with .toml"
        raise HardtailError(f"there is no source of claims {name!r}; {known}")
    return SOURCES.load(name)


@cache
def the_paper() -> Paper:
    """The paper that hardtail reproduces."""
    found = SOURCES.load(PAPER)
    assert isinstance(found, Paper)
    return found


@cache
def all_claims() -> dict[str, Claim]:
    """Every claim of the paper by its id, in the order of its statements."""
    return {claim.id: claim for claim in the_paper().claims()}


@cache
def printed_accuracy() -> dict[tuple[str, str, str], dict[str, float]]:
    """What the paper prints: exact match by task, scheme and policy, then by stratum."""
    printed: dict[tuple[str, str, str], dict[str, float]] = {}
    for cell in (cell for claim in all_claims().values() for cell in _cells(claim)):
        figure = cell.figure
        if isinstance(figure, ShareRight) and figure.metric == "exact_match" and cell.paper is not None:
            printed.setdefault((figure.task, figure.scheme, figure.policy), {})[figure.stratum] = cell.paper
    return printed


def judged_orders(task: str) -> dict[str, set[str]]:
    """The strata of a task whose accuracy is claimed, by the paper or by a source of `FILES`, each with the orders."""
    sources = [the_paper(), *(source_named(path.stem) for path in FILES.glob("*.toml"))]
    found: dict[str, set[str]] = {}
    asked = [figure for source in sources for claim in source.claims() for figure in _figures(claim) + _beside(claim)]
    while asked:
        figure = asked.pop()
        if isinstance(figure, ShareRight) and figure.task == task:
            found.setdefault(figure.stratum, set()).add(figure.policy)
        asked += figure.parts if isinstance(figure, Combined) else ()
    return found


def claim_named(name: str, source: Source | None = None) -> Claim:
    """A claim by its id, of one source or of whichever has it, the paper first."""
    if source is None and name in all_claims():
        return all_claims()[name]
    sources = map(source_named, source_names()) if source is None else [source]
    found = {claim.id: claim for each in sources for claim in each.claims()}
    if name in found:
        return found[name]
    close = get_close_matches(name, found, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(close)}?" if close else "`hardtail claims` lists them all"
    raise HardtailError(f"there is no claim {name!r}; {hint}")


def claims_named(name: str, source: Source | None = None) -> list[Claim]:
    """The claim with this id or, for the first words of ids such as `countdown.puma`, all claims under it.

    Those of one source, or of the first that has any, the paper first.
    """
    try:
        return [claim_named(name, source)]
    except HardtailError:
        sources = [the_paper(), *map(source_named, source_names())] if source is None else [source]
        found = ([claim for claim in each.claims() if claim.id.startswith(f"{name}.")] for each in sources)
        if under := next(filter(None, found), None):
            return under
        raise


def judge(results: Results, claims: Iterable[Claim] | None = None) -> list[Judged]:
    return [claim.judge(results) for claim in (all_claims().values() if claims is None else claims)]


def _cells(claim: Claim) -> list[Cell]:
    return list(dict.fromkeys(cell for check in claim.checks for cell in check.cells))


def _figures(claim: Claim) -> list[Figure]:
    return list(dict.fromkeys(cell.figure for cell in _cells(claim)))


def _beside(claim: Claim) -> list[Figure]:
    return [other for figure in _figures(claim) for other in figure.beside()]


# -- for programs -----------------------------------------------------------------------------------------------

NOT_MEASURED = {"mean": None, "low": None, "high": None, "seeds": 0}
_PART = ("rule", "of", "paper", "ours", "seeds", "verdict", "remark")


def as_json(item: Judged, results: Results, *, evidence: bool = False) -> dict[str, Any]:
    """A claim with its verdict as JSON; with `evidence` also every record behind it."""
    claim = item.claim
    read = _read(claim, results)
    row: dict[str, Any] = {
        "id": claim.id,
        "claim": claim.sentence,
        "where": claim.where,
        "paper": claim.paper,
        "ours": item.ours,
        "seeds": item.seeds,
        "left_out": [run._asdict() for run in item.left_out],
        "reading": results.reading,
        "checkpoint": results.checkpoint,
        "verdict": item.verdict.value,
        "says": item.says,
        "shortened": item.shortened,
        "run_caveats": list(item.caveats),
        "settings": claim.settings or None,
        "caveat": claim.caveat or None,
        "parts": [dict(zip(_PART, (*part, remark or None), strict=True)) for *part, remark in _parts(item)],
        "figures": [
            {"figure": cell.figure.label, "paper": cell.paper, "paper_n": cell.n, "runs": list(runs)}
            | (asdict(ours) if ours else NOT_MEASURED)
            for cell, ours, runs in _estimates(read)
        ],
    }
    for key, beside in (("records", False), ("beside", True)) if evidence else ():
        row[key] = [
            {"figure": label, **asdict(sample), "interval": list(sample.interval) if sample.interval else None}
            for label, sample in _samples(read, beside=beside)
        ]
    return row


def _parts(item: Judged) -> list[tuple[str | int | None, ...]]:
    """For each check what `_PART` names."""
    return [
        (type(check).__name__, check.about, check.printed, found.ours, found.seeds, found.verdict.value, found.remark)
        for check, found in zip(item.claim.checks, item.findings, strict=True)
    ]


_Read = list[tuple[Cell, Results]]


def _read(claim: Claim, results: Results) -> _Read:
    """Every figure of every check, with the results as that check reads them."""
    return [(cell, held) for check in claim.checks for held in [check.among(results)] for cell in check.cells]


def _estimates(read: _Read) -> list[tuple[Cell, Estimate | None, tuple[str, ...]]]:
    """Every figure with ours and the runs behind it; more than once if its checks read different runs."""
    found = [
        (cell, cell.figure.estimate(held), tuple(run.name for run in cell.figure.runs(held))) for cell, held in read
    ]
    return list(dict.fromkeys(found))


def _samples(read: _Read, *, beside: bool = False) -> list[tuple[str, Sample]]:
    """Every record behind the figures, or behind the same `beside` them in another reading, with its figure."""
    figures = [(of, held) for cell, held in read for of in (cell.figure.beside() if beside else [cell.figure])]
    return list(dict.fromkeys((figure.label, sample) for figure, held in figures for sample in figure.samples(held)))


# -- for people -------------------------------------------------------------------------------------------------

_ROW = ("id", "claim", "where", "claimed", "ours", "seeds", "verdict")
_RECORD = ("value", "interval", "n", "run", "seed", "checkpoint", "policy", "stratum", "commit", "device")
_HEADINGS = {"checkpoint": "weights", "interval": "95 % interval", "paper": "claimed"}


def _row(item: Judged) -> tuple[str | int | None, ...]:
    """What `_ROW` names."""
    claim = item.claim
    return claim.id, claim.sentence, claim.where, claim.paper, item.ours, item.seeds, item.says


def ledger_table(judged: Sequence[Judged], results: Results, title: str = "The claims of the paper") -> Table:
    """One row for each claim."""
    rows = []
    for item in judged:
        *words, ours, seeds, says = _row(item)
        rows.append((*words, ours or item.why, seeds, says))
    return Table(f"{title}; {_basis(judged, results)}", _ROW, tuple(rows))


def counts_table(judged: Sequence[Judged]) -> Table:
    """How many claims have each verdict, and how many of them by one seed alone, shortened runs or with a caveat."""
    counted = Counter(item.verdict for item in judged)
    single = Counter(item.verdict for item in judged if item.one_seed)
    shortened = Counter(item.verdict for item in judged if item.shortened)
    caveats = Counter(item.verdict for item in judged if item.caveats)
    counts = (counted, single, shortened, caveats)
    rows = tuple((verdict.value, *(count[verdict] for count in counts)) for verdict in Verdict)
    columns = ("verdict", "claims", "by one seed", "by a quarter of the steps", "with a caveat")
    return Table("verdicts", columns, rows)


def evidence_tables(item: Judged, results: Results) -> list[Table]:
    """What is behind one verdict: its parts, its figures, every record, and the same in other readings."""
    read = _read(item.claim, results)
    more = {
        "steps": "a quarter of the paper's" if item.shortened else "",
        "why": item.why,
        "caveat": "; ".join(item.caveats),
        "left out": why_left_out(item.left_out),
        "settings": item.claim.settings,
        "note": item.claim.caveat,
    }
    about = [*zip(_ROW[1:], _row(item)[1:], strict=True), *((key, words) for key, words in more.items() if words)]
    tables = [
        Table(f"{item.claim.id}; {_basis([item], results)}", ("", ""), tuple(about)),
        _numbered("parts", tuple(_HEADINGS.get(name, name) for name in _PART), _parts(item)),
        _figures_table(read),
        _records_table("records", _samples(read)),
        _records_table("in another reading, not judged", _samples(read, beside=True)),
    ]
    return [table.without_empty_columns() for table in tables if table.rows]


def _basis(judged: Iterable[Judged], results: Results) -> str:
    usual = "; ".join(dict.fromkeys(item.claim.weights for item in judged))
    return f"reading {results.reading}, {f'{results.checkpoint} weights' if results.checkpoint else usual}"


def _figures_table(read: _Read) -> Table:
    """Every figure next to what the paper prints for it; with its runs if checks read it from different ones."""
    last = {(cell.figure, runs): (cell, ours) for cell, ours, runs in _estimates(read)}
    held = Counter(figure.label for figure, _ in last)
    rows = []
    for (figure, runs), (cell, ours) in last.items():
        label = f"{figure.label} ({', '.join(runs)})" if held[figure.label] > 1 and runs else figure.label
        rows.append((label, cell.paper, cell.n, ours.text() if ours else "–", ours.seeds if ours else 0))
    return Table("figures", ("figure", "claimed", "their n", "ours", "seeds"), tuple(rows))


def _short(commit: str | None) -> str | None:
    """The first digits of a commit, and the + that marks a tree with changes."""
    return commit and commit[:12] + "+" * commit.endswith("+")


def _records_table(title: str, samples: Iterable[tuple[str, Sample]]) -> Table:
    rows = []
    for label, sample in samples:
        between = f"{sample.interval.low:.3f}–{sample.interval.high:.3f}" if sample.interval else None
        shown = {"interval": between, "commit": _short(sample.commit)}
        rows.append((label, *(shown[name] if name in shown else getattr(sample, name) for name in _RECORD)))
    return _numbered(title, ("figure", *(_HEADINGS.get(name, name) for name in _RECORD)), rows)


def _numbered(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str | float | None, ...]]) -> Table:
    """A table whose rows have numbers, by which they are found in its other parts on a narrow screen."""
    return Table(title, ("#", *columns), tuple((number, *row) for number, row in enumerate(rows, start=1)))
