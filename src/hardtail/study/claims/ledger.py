"""The whole ledger: all claims, judged, as tables and as JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.core.tables import Cell, Table
from hardtail.study.claims.base import Check, Claim, Finding, Judged, Verdict
from hardtail.study.claims.evidence import Results, Sample
from hardtail.study.claims.figures import Accuracy, Figure
from hardtail.study.claims.source import Source

SOURCES = ("hardtail.study.claims.confidence_shortcut",)


def sources() -> list[Source]:
    return [import_module(name).SOURCE for name in SOURCES]


@cache
def all_claims() -> dict[str, Claim]:
    """Every claim by its id, source by source in the order of its statements."""
    return {claim.id: claim for source in sources() for claim in source.claims()}


@cache
def printed_accuracy() -> dict[tuple[str, str, str], dict[str, float]]:
    """What sources print: exact match by task, scheme and policy, then by stratum."""
    printed: dict[tuple[str, str, str], dict[str, float]] = {}
    for cell in (cell for claim in all_claims().values() for check in claim.checks for cell in check.cells):
        figure = cell.figure
        if isinstance(figure, Accuracy) and figure.metric == "exact_match" and cell.paper is not None:
            printed.setdefault((figure.task, figure.scheme, figure.policy), {})[figure.stratum] = cell.paper
    return printed


def claim_named(name: str) -> Claim:
    found = all_claims()
    if name in found:
        return found[name]
    close = get_close_matches(name, found, n=3, cutoff=0.4)
    hint = f"close are {', '.join(close)}" if close else "`hardtail claims` lists them all"
    raise HardtailError(f"there is no claim {name!r}; {hint}")


def judge(results: Results, claims: Iterable[Claim] | None = None) -> list[Judged]:
    return [claim.judge(results) for claim in (all_claims().values() if claims is None else claims)]


# -- for people -------------------------------------------------------------------------------------------------


def ledger_table(judged: Sequence[Judged], results: Results) -> Table:
    """One row a claim."""
    rows = tuple(
        (
            item.claim.id,
            item.claim.sentence,
            item.claim.where,
            item.claim.paper,
            item.ours or ("not learned" if item.left_out else None),
            item.seeds,
            item.verdict.value,
        )
        for item in judged
    )
    return Table(
        f"The paper's claims; {_basis(results)}", ("id", "claim", "where", "paper", "ours", "seeds", "verdict"), rows
    )


def counts_table(judged: Sequence[Judged]) -> Table:
    """How many claims have each verdict."""
    counted = Counter(item.verdict for item in judged)
    return Table("verdicts", ("verdict", "claims"), tuple((verdict.value, counted[verdict]) for verdict in Verdict))


def evidence_tables(item: Judged, results: Results) -> list[Table]:
    """What stands behind one verdict: its parts, every record that went in, and other readings beside it."""
    claim = item.claim
    about: list[tuple[Cell, ...]] = [
        ("claim", claim.sentence),
        ("where", claim.where),
        ("paper", claim.paper),
        ("ours", item.ours),
        ("seeds", item.seeds),
        ("verdict", item.verdict.value),
    ]
    if item.left_out:
        about.append(("left out", f"not learned: {', '.join(item.left_out)}"))
    if claim.caveat:
        about.append(("note", claim.caveat))
    parts = tuple(
        (type(check).__name__, check.about, check.printed, found.ours, found.seeds, found.verdict.value, found.remark)
        for check, found in zip(claim.checks, item.findings, strict=True)
    )
    tables = [
        Table(f"{claim.id}; {_basis(results)}", ("", ""), tuple(about)),
        Table("parts", ("rule", "of", "paper", "ours", "seeds", "verdict", "remark"), parts),
        _figures_table(claim, results),
        _records_table("records", _figures(claim), results),
    ]
    beside = [other for figure in _figures(claim) for other in figure.beside()]
    if any(figure.samples(results) for figure in beside):
        tables.append(_records_table("in another reading, not judged", beside, results))
    return tables


def _basis(results: Results) -> str:
    weights = f"{results.checkpoint} weights" if results.checkpoint else "the weights that the paper used"
    return f"reading {results.reading}, {weights}"


def _figures(claim: Claim) -> list[Figure]:
    return list(dict.fromkeys(cell.figure for check in claim.checks for cell in check.cells))


def _figures_table(claim: Claim, results: Results) -> Table:
    """Every figure beside what the paper prints for it."""
    printed = {cell.figure: cell for check in claim.checks for cell in check.cells}
    rows = []
    for figure, cell in printed.items():
        ours = figure.estimate(results)
        rows.append((figure.label, cell.paper, cell.n, ours.text() if ours else "–", ours.seeds if ours else 0))
    return Table("figures", ("figure", "paper", "paper's n", "ours", "seeds"), tuple(rows))


_RECORD = ("run", "seed", "weights", "policy", "stratum", "n", "value", "95 % interval", "commit", "device")


def _records_table(title: str, figures: Iterable[Figure], results: Results) -> Table:
    samples = dict.fromkeys((figure.label, sample) for figure in figures for sample in figure.samples(results))
    return Table(title, ("figure", *_RECORD), tuple((label, *_row(sample)) for label, sample in samples))


def _row(sample: Sample) -> tuple[Cell, ...]:
    interval = sample.interval
    return (
        sample.run,
        sample.seed,
        sample.checkpoint,
        sample.policy,
        sample.stratum,
        sample.n,
        sample.value,
        f"{interval.low:.3f} – {interval.high:.3f}" if interval else None,
        sample.commit,
        sample.device,
    )


# -- for programs -----------------------------------------------------------------------------------------------


def as_json(item: Judged, results: Results, *, evidence: bool = False) -> dict[str, Any]:
    """A row as JSON holds it; with `evidence` also every record that went in."""
    claim = item.claim
    row: dict[str, Any] = {
        "id": claim.id,
        "claim": claim.sentence,
        "where": claim.where,
        "paper": claim.paper,
        "ours": item.ours,
        "seeds": item.seeds,
        "left_out": list(item.left_out),
        "reading": results.reading,
        "checkpoint": results.checkpoint,
        "verdict": item.verdict.value,
        "caveat": claim.caveat or None,
        "parts": [_part_json(check, found) for check, found in zip(claim.checks, item.findings, strict=True)],
        "figures": _figures_json(claim, results),
    }
    if evidence:
        row["records"] = _records_json(_figures(claim), results)
        row["beside"] = _records_json([o for figure in _figures(claim) for o in figure.beside()], results)
    return row


def _part_json(check: Check, found: Finding) -> dict[str, Any]:
    return {
        "rule": type(check).__name__,
        "of": check.about,
        "paper": check.printed,
        "ours": found.ours,
        "seeds": found.seeds,
        "verdict": found.verdict.value,
        "remark": found.remark or None,
    }


def _figures_json(claim: Claim, results: Results) -> list[dict[str, Any]]:
    figures = []
    for cell in dict.fromkeys(cell for check in claim.checks for cell in check.cells):
        ours = cell.figure.estimate(results)
        figures.append(
            {
                "figure": cell.figure.label,
                "paper": cell.paper,
                "paper_n": cell.n,
                "mean": ours and ours.mean,
                "low": ours and ours.low,
                "high": ours and ours.high,
                "seeds": ours.seeds if ours else 0,
            }
        )
    return figures


def _records_json(figures: Iterable[Figure], results: Results) -> list[dict[str, Any]]:
    samples = dict.fromkeys((figure.label, sample) for figure in figures for sample in figure.samples(results))
    return [
        {"figure": label, **vars(sample), "interval": list(sample.interval) if sample.interval else None}
        for label, sample in samples
    ]
