"""The paper's claims that recorded results decide, and the figures that are recorded for them."""

from typing import Any

from hardtail.study.claims import all_claims
from hardtail.study.claims.combined import Pooled, Weighted
from hardtail.study.claims.figures import Figure
from hardtail.study.claims.plain import Computed

RECORDED = [claim for claim in all_claims().values() if not any(isinstance(check, Computed) for check in claim.checks)]


def recorded_parts(figure: Figure) -> list[Any]:
    """The figures that a combined one is made of, or the figure itself."""
    return list(figure.parts) if isinstance(figure, Weighted | Pooled) else [figure]
