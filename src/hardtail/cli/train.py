"""`hardtail train RECIPE [any field as a flag]`: reads arguments and prints, no logic."""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated

from tyro.conf import arg
from tyro.constructors import PrimitiveConstructorSpec, PrimitiveTypeInfo

from hardtail.cli.common import Device, OwnFolder, Patience, asked_to_stop, say, usable_device
from hardtail.cli.options import RULES, option, refuse_outside
from hardtail.cli.parsing import Call, parsed
from hardtail.cli.watching import Watcher
from hardtail.core.errors import FieldError, HardtailError
from hardtail.core.hub import pinned_data
from hardtail.core.pretrained import HF, ZOO, Pretrained
from hardtail.core.records import LogLine
from hardtail.core.terminal import console, guard
from hardtail.schemes.named import scheme_named
from hardtail.show.words import duration
from hardtail.study.recipes import recipe_named
from hardtail.tasks.named import task_to_json
from hardtail.training.begin import identified
from hardtail.training.checkpoint import state_step
from hardtail.training.estimate import estimate
from hardtail.training.ranks import open_ranks
from hardtail.training.recipe import Recipe
from hardtail.training.run import train
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
    typed = name
    if text is not None:
        typed += f" --scheme {text}"
        words_of = re.sub(r"[^\w.=]+", "-", text)
        recipe = replace(recipe, scheme=scheme_named(text), name=f"{recipe.name}-{words_of}")
    title = recipe.name

    def command(
        recipe: Annotated[Recipe, arg(name="")] = recipe,
        out: Annotated[Path | None, option("run directory [runs/RECIPE-sSEED]", "DIR")] = None,
        device: Device = None,
        data: Annotated[
            Path | None,
            option(
                "training data that `hardtail data` built, or hf:USER/NAME [built here]; with FILE-test.npz next to "
                "it, the best weights are chosen by that",
                "FILE",
            ),
        ] = None,
        patience: Patience = None,
        log: Annotated[
            tuple[str, ...],
            option(f"also log to {', '.join(SINKS)}; log.jsonl in the run is always written", "SINK"),
        ] = (),
        template: Annotated[
            str | None,
            option(
                "of --model: the text around a problem, e.g. 'Add: {prompt} = {answer}' [the problem alone]", "TEXT"
            ),
        ] = None,
        path: OwnFolder = None,  # taken before
        dry_run: Annotated[bool, option("show what would run, and what it would cost")] = False,
    ) -> Call:
        def run() -> None:
            guard()
            refuse_outside(command, {"patience": patience})
            chosen = _fine_tuned(recipe, template)
            folder = out or Path("runs") / f"{chosen.name}-s{chosen.seed}"
            if dry_run:
                _show(chosen, folder)
            else:
                file = None if data is None else pinned_data(data)
                _train(chosen, folder, usable_device(device), file, patience, log)

        return run

    try:
        parsed(command, rest, f"hardtail train {typed}", f"Train {title}.")()
    except FieldError as error:
        if error.owner != Recipe.__name__:
            raise
        raise HardtailError(f"--{error.field.replace('_', '-')} {error.problem}") from error


def _scheme(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The value of `--scheme`, which decides which other flags exist, and the remaining words."""
    rest = [part for word in words for part in (word.split("=", 1) if word.startswith("--scheme=") else [word])]
    if "--scheme" not in rest:
        return None, rest
    at = rest.index("--scheme")
    if at + 1 == len(rest) or rest[at + 1].startswith("-"):
        raise HardtailError("--scheme needs a scheme, for example --scheme papl,alpha=5")
    return rest[at + 1], rest[:at] + rest[at + 2 :]


@RULES.primitive_rule
def _pretrained(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Pretrained] | None:
    """The rule for `--model hf:…` or `zoo:…`, which is one word; its hash and template follow."""
    if info.type is not Pretrained:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="hf:MODEL|zoo:NAME",
        instance_from_str=lambda words: Pretrained(words[0], ""),
        is_instance=lambda value: isinstance(value, Pretrained),
        str_from_instance=lambda value: [value.name],
    )


def _fine_tuned(recipe: Recipe, template: str | None) -> Recipe:
    """The recipe with the model that `--model` names, if it does."""
    if recipe.model is None or recipe.model.sha256:  # none, or the recipe's own
        if template is not None:
            raise HardtailError("--template is the text around a problem for --model hf:…; leave it out, or give both")
        return recipe
    model = identified(recipe.model.name, template)
    stem = re.sub(r"[^\w.]+", "-", Path(model.name.removeprefix(HF).removeprefix(ZOO)).name)
    return replace(recipe, model=model, name=f"{recipe.name}-{stem}")


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
    recipe: Recipe,
    folder: Path,
    device: str,
    data: Path | None,
    patience: int | None,
    log: Sequence[str],
) -> None:
    with open_ranks(device) as (ranks, own_device):
        call = partial(train, recipe, folder, device=own_device, data_file=data, patience=patience, ranks=ranks)
        if not ranks.first:  # the first process speaks for all
            with asked_to_stop(lambda: True) as stop:
                call(should_stop=stop)
            return
        watcher = Watcher()
        watcher.begin("", "preparing", 0)
        with open_sinks(log, folder, recipe) as pass_on, asked_to_stop(lambda: watcher.began) as stop, watcher.shown():

            def report(line: LogLine) -> None:
                watcher.report(line, recipe.steps)
                pass_on(line)

            def progress(step: int) -> None:
                watcher.move("", "step", step, recipe.steps)

            @cache
            def announce() -> None:  # once it is clear that there is something to do
                tell = say if watcher.bar.disable else watcher.say
                tell(f"{recipe.name}: {_what_is_left(recipe, folder, own_device)}")

            def preparing(what: str) -> None:
                announce()
                watcher.move("", what, 0, 0)

            outcome = call(report=report, progress=progress, preparing=preparing, should_stop=stop)
    if outcome.finished:
        ended = f"out of patience ({outcome.patience:,} steps)" if outcome.patience else "finished"
        named = task_to_json(recipe.task)["name"]
        task = f" --task {named}" if ":" in named else ""  # one that is not registered
        print(f"{folder}: {ended} at step {outcome.step:,} ({outcome.how})\n`hardtail eval {folder}{task}` measures it")
        return
    print(f"{folder}: stopped and saved at step {outcome.step:,}; the same command continues from there")
    if ranks.world == 1:  # torchrun would take it for a failure
        sys.exit(130)


def _what_is_left(recipe: Recipe, folder: Path, device: str) -> str:
    """How many steps there still are, and about how long they take."""
    cost, left = estimate(recipe), recipe.steps - state_step(folder)
    on_cpu, on_gpu = (duration(seconds * left / recipe.steps) for seconds in (cost.cpu_seconds, cost.gpu_seconds))
    steps = f"{left:,} steps" if left == recipe.steps else f"{left:,} of {recipe.steps:,} steps are left"
    return f"{steps}, about {on_cpu} on two cores" if device == "cpu" else f"{steps}, about {on_gpu} on an H200"
