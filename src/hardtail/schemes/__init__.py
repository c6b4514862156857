"""Training schemes: which answer cells are hidden or hold the model's own tokens, and what each costs."""

from hardtail.schemes.base import Corpus, Scheme, View
from hardtail.schemes.mixture import Mixture
from hardtail.schemes.own import Own
from hardtail.schemes.papl import Focal, Papl
from hardtail.schemes.puma import Puma
from hardtail.schemes.random import Random

__all__ = ["Corpus", "Focal", "Mixture", "Own", "Papl", "Puma", "Random", "Scheme", "View"]
