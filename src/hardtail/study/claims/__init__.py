"""The ledger of the paper's claims: each a sentence, a place, the paper's numbers, and a rule over recorded results."""

from hardtail.study.claims.base import Claim, Judged, Verdict
from hardtail.study.claims.evidence import Results
from hardtail.study.claims.ledger import all_claims, claim_named, judge

__all__ = ["Claim", "Judged", "Results", "Verdict", "all_claims", "claim_named", "judge"]
