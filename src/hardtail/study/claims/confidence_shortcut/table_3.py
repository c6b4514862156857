"""Claims about ListOps, Countdown and Sudoku: section 4.3 of the paper, its Table 3 and the appendix."""

from itertools import product

from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.study.claims.figures import ShareRight
from hardtail.study.claims.recovery import Unrecovered
from hardtail.study.claims.rules import AtLeast, Gap, Ratio, above, similar
from hardtail.study.claims.source import Checks
from hardtail.study.names import THREE

LISTOPS, COUNTDOWN, SUDOKU = (SOURCE.about(task) for task in ("listops", "countdown", "sudoku"))


def claims() -> list[Claim]:
    parts = (LISTOPS, "listops", _listops()), (COUNTDOWN, "countdown", _countdown()), (SUDOKU, "sudoku", _sudoku())
    return [claim for tables, name, checks in parts for claim in tables.claims() + SOURCE.stated(name, checks)]


def _listops() -> Checks:
    cell = LISTOPS.cell
    shallow, deep = ({scheme: cell(scheme, "confidence", depth) for scheme in THREE} for depth in ("3", "5"))

    def deeper(scheme: str, times: float) -> Ratio:
        return Ratio((deep["random"], shallow[scheme]), (deep[scheme], shallow["random"]), times)

    return {
        "listops.order.3": [above(shallow["random"], shallow["papl"]), above(shallow["papl"], shallow["puma"])],
        "listops.order.5": [above(deep["random"], deep["papl"]), above(deep["papl"], deep["puma"])],
        "listops.deeper.papl": [deeper("papl", 1.24)],
        "listops.deeper.puma": [deeper("puma", 10.2)],
        "listops.unrecovered": [Unrecovered(deep[scheme], cell(scheme, "recovery", "5")) for scheme in THREE[:2]],
        "listops.random-decode": [similar(deep[scheme], cell(scheme, "random", "5")) for scheme in THREE[:2]],
    }


def _countdown() -> Checks:
    cell = COUNTDOWN.cell
    (random_low, puma_low), (random_high, puma_high) = (
        [cell(scheme, "confidence", stratum) for scheme in ("random", "puma")] for stratum in ("low", "high")
    )

    def puma_behind(stratum: str, order: str) -> list[Gap]:
        return [above(cell(scheme, order, stratum), cell("puma", order, stratum)) for scheme in ("random", "papl")]

    return {
        "countdown.puma.overall": puma_behind("overall", "confidence"),
        "countdown.puma.low": [above(puma_low, random_low)],
        "countdown.puma.high": puma_behind("high", "confidence"),
        "countdown.puma.where": [Gap((random_high, puma_low), (puma_high, random_low))],
        "countdown.random-decode": [
            Unrecovered(puma_high, cell("puma", "random", "high")),
            *puma_behind("high", "random"),
        ],
        "countdown.reveal": [AtLeast(cell(scheme, "reveal", "overall"), 0.99) for scheme in THREE],
        "countdown.sequential": [
            similar(cell(scheme, "confidence", stratum), cell(scheme, "sequential", stratum))
            for stratum, scheme in product(COUNTDOWN.strata, THREE)
        ],
    }


def _sudoku() -> Checks:
    cell, strata, solvers = SUDOKU.cell, SUDOKU.strata, ("propagation", "technique")
    all_tiers = SUDOKU.tables[0].strata[0].of
    _, *tiers = all_tiers

    def in_tier(scheme: str, order: str, tier: str) -> Cell:
        return Cell(ShareRight("sudoku", scheme, SUDOKU.order(order).policy, tier, "cell_accuracy"))

    def shrinking_lead(k: str) -> Gap:
        """PUMA's lead over random masking is greater under confidence than in random order."""
        return Gap(
            (cell("puma", "confidence", k), cell("random", "random", k)),
            (cell("random", "confidence", k), cell("puma", "random", k)),
        )

    best = {k: [above(cell("puma", "confidence", k), cell(s, "confidence", k)) for s in THREE[:2]] for k in strata}
    return {
        **{f"sudoku.puma.best.{k}": checks for k, checks in best.items()},
        "sudoku.puma.best.tiers": [
            above(in_tier("puma", "confidence", tier), in_tier(s, "confidence", tier))
            for tier, s in product(all_tiers, THREE[:2])
        ],
        **{f"sudoku.trajectory.{k}": [shrinking_lead(k)] for k in ("top1", "tl4")},
        "sudoku.orders.worse": [
            above(cell(s, "confidence", k), cell(s, order, k)) for order, k, s in product(solvers, strata, THREE)
        ],
        "sudoku.orders.propagation-ahead": [
            above(cell(s, "propagation", k), cell(s, "technique", k)) for k, s in product(strata, THREE)
        ],
        "sudoku.orders.puma-leads": [
            above(cell("puma", order, k), cell("random", order, k)) for order, k in product(solvers, strata)
        ],
        "sudoku.orders.puma-leads.tiers": [
            above(in_tier("puma", order, tier), in_tier("random", order, tier))
            for order, tier in product(solvers, tiers)
        ],
    }
