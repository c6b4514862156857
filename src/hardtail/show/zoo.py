"""The shipped models in a terminal: a table of all, and all that is known about one."""

from collections.abc import Mapping, Sequence
from textwrap import fill

from hardtail.core.pretrained import ZOO
from hardtail.core.registry import TASKS
from hardtail.core.tables import SCREEN, Table
from hardtail.zoo import Model, Rounded


def zoo_table(models: Sequence[Model]) -> Table:
    """One line a model: exact match on ordinary problems and on the hard tail, by confidence and in logical order."""
    columns = ("model", "task", "scheme", "ordinary", "hard tail", "in order")
    rows = []
    for model in models:
        logical = TASKS.load(model.task).order_names[0]
        strata = list(model.accuracy)
        shown = ((strata[0], "top1"), (strata[-1], "top1"), (strata[-1], logical))
        cells = (model.accuracy[stratum].get(policy) for stratum, policy in shown)
        scores = (None if cell is None else f"{cell:.3f}" for cell in cells)
        rows.append((model.name, model.task, model.scheme or None, *scores))
    return Table("exact match: under confidence, and on the hard tail in logical order", columns, tuple(rows))


def hard_strata(models: Sequence[Model], width: int = SCREEN) -> str:
    """Which problems the hard tail of each task is."""
    found = {model.task: list(model.accuracy)[-1] for model in models}
    return fill(f"hard tail: {', '.join(f'{task} {stratum}' for task, stratum in found.items())}", width)


def zoo_text(model: Model, width: int = SCREEN) -> str:
    """Everything about a model in a few lines."""
    measured = [f"  {stratum}: {_shares(of, model.n[stratum])}" for stratum, of in model.accuracy.items()]
    how = f"  on problems of the run's own seed, decoded in {model.decode_precision} (results/)"
    about = fill(f"{model.about}.", width, initial_indent="  ", subsequent_indent="  ")
    origin = f"  run {model.run}, {model.kind} weights, {model.licence}"
    rounded = [] if model.rounded is None else [f"  {rounded_text(model.rounded)}"]
    return "\n".join([f"{ZOO}{model.name}", about, *measured, how, origin, *rounded, f"  sha256 {model.sha256}"])


def _shares(right: Mapping[str, float], n: Mapping[str, int]) -> str:
    """`top1 0.572 of 500, lsb 1.000 of 500`."""
    return ", ".join(f"{policy} {share:.3f} of {n[policy]:,}" for policy, share in right.items())


def rounded_text(rounded: Rounded) -> str:
    """In which precision weights are shipped, and on what that was shown to change no answer."""
    return f"{rounded.to}: no answer changed on {rounded.n:,} each of {' and '.join(rounded.strata)}"
