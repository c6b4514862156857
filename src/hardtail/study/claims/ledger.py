"""The whole ledger: all claims, judged, as tables and as JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import cache
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.core.registry import Registry
from hardtail.core.tables import Table
from hardtail.study.claims.base import Cell, Claim, Judged, Verdict
from hardtail.study.claims.evidence import Results
from hardtail.study.claims.figures import Accuracy, Figure
from hardtail.study.claims.source import Source

SOURCES: Registry[Source] = Registry(
    "claims source",
    "hardtail.claims",
    {
        "confidence-shortcut": "hardtail.study.claims.confidence_shortcut:SOURCE",
        "ours": "hardtail.study.claims.ours:SOURCE",
    },
    lambda found: None if isinstance(found, Source) else "it must be a Source of hardtail.study.claims.source",
)


OURS = "ours"
"""The source of what this project itself claims, which is not among the claims of papers."""


def sources() -> list[Source]:
    """The papers."""
    return [SOURCES.load(name) for name in SOURCES.names() if name != OURS]


@cache
def all_claims() -> dict[str, Claim]:
    """Every claim of a paper by its id, source by source in the order of its statements."""
    return {claim.id: claim for source in sources() for claim in source.claims()}


@cache
def claims_of(source: str) -> list[Claim]:
    """The claims of one source, in the order of its statements."""
    return SOURCES.load(source).claims()


@cache
def printed_accuracy() -> dict[tuple[str, str, str], dict[str, float]]:
    """What sources print: exact match by task, scheme and policy, then by stratum."""
    printed: dict[tuple[str, str, str], dict[str, float]] = {}
    for cell in (cell for claim in all_claims().values() for cell in _cells(claim)):
        figure = cell.figure
        if isinstance(figure, Accuracy) and figure.metric == "exact_match" and cell.paper is not None:
            printed.setdefault((figure.task, figure.scheme, figure.policy), {})[figure.stratum] = cell.paper
    return printed


def claim_named(name: str) -> Claim:
    found = all_claims() | {claim.id: claim for claim in claims_of(OURS)}
    if name in found:
        return found[name]
    close = get_close_matches(name, found, n=3, cutoff=0.4)
    hint = f"close are {', '.join(close)}" if close else "`hardtail claims` lists them all"
    raise HardtailError(f"there is no claim {name!r}; {hint}")


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


def as_json(item: Judged, results: Results, *, evidence: bool = False) -> dict[str, Any]:
    """A claim with its verdict as JSON; with `evidence` also every record behind it."""
    row = _row(item, results) | {"parts": _parts(item)}
    row["figures"] = [
        {"figure": cell.figure.label, "paper": cell.paper, "paper_n": cell.n}
        | (asdict(ours) if (ours := cell.figure.estimate(results)) else NOT_MEASURED)
        for cell in _cells(item.claim)
    ]
    if evidence:
        row["records"] = _records(_figures(item.claim), results)
        row["beside"] = _records(_beside(item.claim), results)
    return row


def _row(item: Judged, results: Results) -> dict[str, Any]:
    return {
        "id": item.claim.id,
        "claim": item.claim.sentence,
        "where": item.claim.where,
        "paper": item.claim.paper,
        "ours": item.ours,
        "seeds": item.seeds,
        "left_out": list(item.left_out),
        "reading": results.reading,
        "checkpoint": results.checkpoint,
        "verdict": item.verdict.value,
        "caveat": item.claim.caveat or None,
    }


def _parts(item: Judged) -> list[dict[str, Any]]:
    return [
        {
            "rule": type(check).__name__,
            "of": check.about,
            "paper": check.printed,
            "ours": found.ours,
            "seeds": found.seeds,
            "verdict": found.verdict.value,
            "remark": found.remark or None,
        }
        for check, found in zip(item.claim.checks, item.findings, strict=True)
    ]


def _records(figures: Iterable[Figure], results: Results) -> list[dict[str, Any]]:
    samples = dict.fromkeys((figure.label, sample) for figure in figures for sample in figure.samples(results))
    return [
        {"figure": label, **asdict(sample), "interval": list(sample.interval) if sample.interval else None}
        for label, sample in samples
    ]


# -- for people -------------------------------------------------------------------------------------------------

_ROW = ("id", "claim", "where", "paper", "ours", "seeds", "verdict")
_RECORD = ("figure", "run", "seed", "checkpoint", "policy", "stratum", "n", "value", "interval", "commit", "device")
_HEADINGS = {"checkpoint": "weights", "interval": "95 % interval"}


def ledger_table(judged: Sequence[Judged], results: Results, whose: str = "The paper's") -> Table:
    """One row for each claim."""
    rows = []
    for item in judged:
        row = _row(item, results)
        row["ours"] = row["ours"] or ("not learned" if item.left_out else None)
        rows.append(tuple(row[key] for key in _ROW))
    return Table(f"{whose} claims; {_basis(results)}", _ROW, tuple(rows))


def counts_table(judged: Sequence[Judged]) -> Table:
    """How many claims have each verdict."""
    counted = Counter(item.verdict for item in judged)
    return Table("verdicts", ("verdict", "claims"), tuple((verdict.value, counted[verdict]) for verdict in Verdict))


def evidence_tables(item: Judged, results: Results) -> list[Table]:
    """What is behind one verdict: its parts, its figures, every record, and the same in other readings."""
    row, parts = _row(item, results), _parts(item)
    about = [(key, row[key]) for key in _ROW[1:]]
    about += [("left out", f"not learned: {', '.join(item.left_out)}")] if item.left_out else []
    about += [("note", item.claim.caveat)] if item.claim.caveat else []
    tables = [
        Table(f"{item.claim.id}; {_basis(results)}", ("", ""), tuple(about)),
        Table(
            "parts", tuple(parts[0]), tuple(tuple((part | {"remark": part["remark"] or ""}).values()) for part in parts)
        ),
        _figures_table(item.claim, results),
        _records_table("records", _figures(item.claim), results),
        _records_table("in another reading, not judged", _beside(item.claim), results),
    ]
    return tables if tables[-1].rows else tables[:-1]


def _basis(results: Results) -> str:
    weights = f"{results.checkpoint} weights" if results.checkpoint else "the weights that the paper used"
    return f"reading {results.reading}, {weights}"


def _figures_table(claim: Claim, results: Results) -> Table:
    """Every figure next to what the paper prints for it."""
    rows = []
    for figure, cell in {cell.figure: cell for cell in _cells(claim)}.items():
        ours = figure.estimate(results)
        rows.append((figure.label, cell.paper, cell.n, ours.text() if ours else "–", ours.seeds if ours else 0))
    return Table("figures", ("figure", "paper", "paper's n", "ours", "seeds"), tuple(rows))


def _records_table(title: str, figures: Iterable[Figure], results: Results) -> Table:
    rows = []
    for record in _records(figures, results):
        if between := record["interval"]:
            record["interval"] = f"{between[0]:.3f} – {between[1]:.3f}"
        rows.append(tuple(record[key] for key in _RECORD))
    return Table(title, tuple(_HEADINGS.get(key, key) for key in _RECORD), tuple(rows))
