"""Training schemes: which answer cells are hidden, and what each costs."""

from hardtail.schemes.base import Corpus, Scheme, View
from hardtail.schemes.mixture import Mixture
from hardtail.schemes.papl import Focal, Papl
from hardtail.schemes.puma import Puma
from hardtail.schemes.random import Random

__all__ = ["Corpus", "Focal", "Mixture", "Papl", "Puma", "Random", "Scheme", "View"]
