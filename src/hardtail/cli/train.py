"""`hardtail train RECIPE [any field as a flag]`: reads arguments and prints, no logic."""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import FlagCreatePairsOff, arg

from hardtail.cli.common import Device, Patience, asked_to_stop, say, usable_device
from hardtail.cli.options import OPTIONAL, option
from hardtail.cli.progress import duration
from hardtail.cli.watching import Watcher
from hardtail.core.errors import HardtailError
from hardtail.core.records import LogLine
from hardtail.core.terminal import console, guard
from hardtail.schemes.named import scheme_named
from hardtail.study.recipes import recipe_named
from hardtail.training.estimate import estimate
from hardtail.training.recipe import Recipe
from hardtail.training.run import refuse_no_patience, train
from hardtail.training.sinks import SINKS, open_sinks


def main(words: Sequence[str]) -> None:
    """Read the recipe's name, then the rest as flags that change that recipe."""
    if words[0].startswith("-"):
        raise HardtailError(
            f"{words[0]} must follow a recipe: hardtail train RECIPE {words[0]} …; `hardtail train` lists the recipes"
        )
    name, *rest = words
    recipe = recipe_named(name)
    text, rest = _scheme(rest)
    if text is not None:
        words_of = re.sub(r"[^\w.=]+", "-", text)
        recipe = replace(recipe, scheme=scheme_named(text), name=f"{recipe.name}-{words_of}")
    name = recipe.name

    def command(
        recipe: Annotated[Recipe, arg(name="")] = recipe,
        out: Annotated[Path | None, option("run directory [runs/RECIPE-sSEED]", "DIR")] = None,
        device: Device = None,
        data: Annotated[Path | None, option("training data built by `hardtail data` [built here]", "FILE")] = None,
        patience: Patience = None,
        log: Annotated[
            tuple[str, ...],
            option(f"also log to {', '.join(SINKS)}; log.jsonl in the run is always written", "SINK"),
        ] = (),
        dry_run: Annotated[bool, option("show what would run, and what it would cost")] = False,
    ) -> None:
        guard()
        refuse_no_patience(patience)
        folder = out or Path("runs") / f"{name}-s{recipe.seed}"
        if dry_run:
            _show(recipe, folder)
        else:
            _train(name, recipe, folder, usable_device(device), data, patience, log)

    tyro.cli(
        command,
        args=rest,
        prog=f"hardtail train {name}",
        config=(FlagCreatePairsOff,),
        description=f"Train {name}.",
        registry=OPTIONAL,
    )


def _scheme(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The value of `--scheme`, which decides which other flags exist, and the remaining words."""
    rest = [part for word in words for part in (word.split("=", 1) if word.startswith("--scheme=") else [word])]
    if "--scheme" not in rest:
        return None, rest
    at = rest.index("--scheme")
    if at + 1 == len(rest) or rest[at + 1].startswith("-"):
        raise HardtailError("--scheme needs a scheme, for example --scheme papl,alpha=5")
    return rest[at + 1], rest[:at] + rest[at + 2 :]


def _show(recipe: Recipe, folder: Path) -> None:
    screen = console()
    screen.print(recipe)
    cost = estimate(recipe)
    screen.print(
        f"\n[bold]{cost.parameters:,}[/bold] parameters, sequences of {recipe.task.seq_len}, "
        f"{cost.flops_per_step / 1e9:,.1f} GFLOP a step\n"
        f"about {cost.memory / 1e9:.1f} GB of memory for training\n"
        f"{recipe.steps:,} steps: about {duration(cost.gpu_seconds)} on one H200, "
        f"{duration(cost.cpu_seconds)} on two CPU cores"
    )
    print(f"would write to {folder}")


def _train(
    name: str,
    recipe: Recipe,
    folder: Path,
    device: str,
    data: Path | None,
    patience: int | None,
    log: Sequence[str],
) -> None:
    watcher = Watcher()
    cost = estimate(recipe)
    time = (
        f"{duration(cost.cpu_seconds)} on two cores" if device == "cpu" else f"{duration(cost.gpu_seconds)} on an H200"
    )
    say(f"{name}: {recipe.steps:,} steps, about {time}")
    watcher.begin("", "preparing data and model", 0)
    with open_sinks(log, folder, recipe) as pass_on, asked_to_stop(lambda: watcher.began) as stop, watcher.shown():

        def report(line: LogLine) -> None:
            watcher.report(line, recipe.steps)
            pass_on(line)

        outcome = train(
            recipe,
            folder,
            device=device,
            data_file=data,
            patience=patience,
            report=report,
            progress=lambda step: watcher.move("", "step", step, recipe.steps),
            should_stop=stop,
        )
    if outcome.finished:
        ended = f"out of patience ({outcome.patience:,} steps)" if outcome.patience else "finished"
        print(f"{folder}: {ended} at step {outcome.step:,} ({outcome.how})\n`hardtail eval {folder}` measures it")
    else:
        print(f"{folder}: stopped and saved at step {outcome.step:,}; the same command continues from there")
        sys.exit(130)
