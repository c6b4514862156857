"""Times and strata in sentences."""


def stratum_words(stratum: str) -> str:
    """A condition as it is printed: `chain ≥ 28`."""
    return stratum.replace(">=", " ≥ ").replace("<=", " ≤ ").replace(",", ", ")


def duration(seconds: float) -> str:
    """A time in its largest unit that it has at least two of: `2.5 hours`, `39 minutes`."""
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            count = seconds / size
            return f"{f'{count:.1f}'.removesuffix('.0') if count < 10 else f'{count:,.0f}'} {unit}"
    whole = max(round(seconds), 1)
    return f"{whole} second{'s' if whole > 1 else ''}"
