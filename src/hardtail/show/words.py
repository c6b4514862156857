"""Numbers and strata in sentences."""

SURE, UNSURE = 0.9999, 0.0001


def probability(value: float) -> str:
    """A probability without false zeros and ones: `> 0.9999`, not `1.000`."""
    if value > SURE:
        return f">\N{NO-BREAK SPACE}{SURE}"
    if value < UNSURE:
        return f"<\N{NO-BREAK SPACE}{UNSURE}"
    return f"{value:.3f}" if 0.001 <= value < 0.9995 else f"{value:.4f}"


def stratum_words(stratum: str) -> str:
    """A condition as it is printed: `chain ≥ 28`."""
    return stratum.replace(">=", " ≥ ").replace("<=", " ≤ ").replace(",", ", ")
