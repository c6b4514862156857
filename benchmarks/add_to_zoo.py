"""Put a recorded run's weights into the zoo that ships with the package, or round those of a model that is in it.

    python benchmarks/add_to_zoo.py addition-puma runs/addition-puma-tf32-s42 PUMA "PUMA, released settings" --half
    python benchmarks/add_to_zoo.py --half addition-puma

The accuracy that the zoo lists is the recorded one (`results/`), of the weights before any rounding.

`--half` ships them in float16, or else in bfloat16, and only if that changes no answer: natural problems and the hard
stratum, drawn with the seed of the training, are decoded by top-1 confidence and in the task's logical order, with the
weights before and after. Every answer that differs in a cell is printed, by its place among the drawn problems.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from msgspec import structs
from safetensors.torch import save as save_tensors

from agreement import compared
from arguments import how_many
from hardtail import zoo
from hardtail.core.files import atomic, file_hash
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import chosen_policies, measured_instances
from hardtail.measuring.subject import load_subject
from hardtail.models.weights import read_tensors
from hardtail.study.store import Store
from hardtail.tasks.base import Task

HALVES: dict[zoo.Half, torch.dtype] = {"float16": torch.float16, "bfloat16": torch.bfloat16}
"""In the order in which they are tried: float16 keeps three more bits of a weight, and none needs bfloat16's range."""
SIDES = {"fp32": "right before", "fast": "right after", "none": "wrong", "both": "right"}
"""What `compared` says of an answer that differs, in words for weights before and after they were rounded."""


class Decoded(NamedTuple):
    """The answers of a model to the problems of a stratum."""

    stratum: str
    policy: str
    trace: Trace


def policies_of(task: Task) -> tuple[str, ...]:
    return "top1", *task.order_names[:1]


def answers(weights: Path, strata: Sequence[str], n: int, device: str) -> Iterator[Decoded]:
    """What the model in a file answers, by stratum and policy."""
    subject = load_subject(str(weights), device=device)
    for stratum in strata:
        instances = measured_instances(subject.task, stratum, n, subject.seed)
        for name, policy in chosen_policies(subject.task, policies_of(subject.task)).items():
            yield Decoded(stratum, name, decode(subject.denoiser, instances, policy, Decoding(device=device)))


def different(before: Sequence[Decoded], after: Iterable[Decoded]) -> int:
    """How many answers differ; each of them is printed."""
    found = 0
    for usual, now in zip(before, after, strict=True):
        result = compared(usual.trace, now.trace)
        print(f"  {usual.stratum}, {usual.policy}: {result['different']} of {result['n']:,} answers differ", flush=True)
        for place, side in result["instances"]:
            print(f"    {place}: {SIDES[side]}")
        found += result["different"]
    return found


def halved(weights: Path, strata: tuple[str, ...], n: int, device: str) -> tuple[bytes, zoo.Rounded]:
    """The file in the first half precision that changes no answer; SystemExit if each of them changes some."""
    tensors, header = read_tensors(weights)
    if any(tensor.dtype != torch.float32 for tensor in tensors.values()):
        raise SystemExit(f"{weights} is not in float32; give the weights that were not rounded")
    before = list(answers(weights, strata, n, device))
    policies = tuple(dict.fromkeys(usual.policy for usual in before))
    changed = {}
    for half, dtype in HALVES.items():
        print(f"{weights.stem} in {half}:", flush=True)
        raw = save_tensors({name: tensor.to(dtype) for name, tensor in tensors.items()}, header)
        with TemporaryDirectory() as folder:
            rounded = Path(folder) / weights.name
            rounded.write_bytes(raw)
            changed[half] = different(before, answers(rounded, strata, n, device))
        if not changed[half]:
            return raw, zoo.Rounded(to=half, strata=strata, policies=policies, n=n, sha256=file_hash(weights))
    counts = ", ".join(f"{number:,} in {half}" for half, number in changed.items())
    raise SystemExit(
        f"{weights} is not shipped in half precision: of {n * len(before):,} answers, rounding changes {counts}; they "
        "are listed above"
    )


def ship(name: str, raw: bytes, listed: dict[str, Any]) -> None:
    """Write the weights into the zoo and list them."""
    path, models = zoo.FOLDER / f"{name}.safetensors", zoo.FOLDER / "zoo.json"
    held = json.loads(models.read_bytes()) if models.exists() else {}
    with atomic(path) as file:
        file.write(raw)
    entry = {key: value for key, value in listed.items() if value is not None} | {"sha256": file_hash(path)}
    with atomic(models) as file:
        file.write(json.dumps(held | {name: entry}, indent=1, ensure_ascii=False).encode() + b"\n")
    print(f"{name}: {len(raw):,} bytes, {listed['accuracy']}")


def of_run(words: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """The weights of a run, and what the zoo lists of them."""
    task = load_subject(str(words.run), kind=words.checkpoint).task
    strata = "natural", words.hard or task.gallery()[1]
    accuracy: dict[str, dict[str, float]] = {stratum: {} for stratum in strata}
    n: dict[str, dict[str, int]] = {stratum: {} for stratum in strata}
    precisions: set[str] = set()
    for run in Store(Path("results")).runs():
        for record in run.accuracies if run.name == words.run.name else ():
            known = record.stratum in accuracy and record.policy in policies_of(task)
            if record.checkpoint == words.checkpoint and known:
                accuracy[record.stratum][record.policy] = record.exact_match
                n[record.stratum][record.policy] = record.n
                precisions.add(record.decode_precision)
    (precision,) = precisions or {"fp32"}
    return words.run / f"{words.checkpoint}.safetensors", {
        "run": words.run.name,
        "task": task.name,
        "scheme": words.scheme,
        "kind": words.checkpoint,
        "about": words.about,
        "accuracy": accuracy,
        "n": n,
        "decode_precision": precision,
        "licence": "Apache-2.0",
    }


def of_zoo(name: str) -> tuple[Path, dict[str, Any]]:
    """The weights of a model that is in the zoo, and what is listed of them."""
    model = zoo.find(name)
    listed = structs.asdict(model)
    return model.path, {key: listed[key] for key in listed if key != "name"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="what it is called in the zoo")
    parser.add_argument("run", type=Path, nargs="?", help="the run directory [with --half: what the zoo has]")
    parser.add_argument("scheme", nargs="?", help="what it was trained with, such as 'PAPL, α = 1'")
    parser.add_argument("about", nargs="?", help="what it is, in a few words")
    parser.add_argument("--checkpoint", choices=("last", "best_probe"), default="last")
    parser.add_argument("--hard", help="the stratum listed next to natural [the hardest of the task's gallery]")
    parser.add_argument("--half", action="store_true", help="ship half precision, if that changes no answer")
    parser.add_argument("-n", type=how_many, default=2000, help="problems of each stratum that --half decodes")
    parser.add_argument("--device", default="cpu", help="where --half decodes them")
    words = parser.parse_args()
    if words.about is None and (words.run is not None or not words.half):
        parser.error("give NAME RUN SCHEME ABOUT, or --half NAME for a model that is in the zoo")
    weights, listed = of_zoo(words.name) if words.run is None else of_run(words)
    raw = weights.read_bytes()
    if words.half:
        raw, rounded = halved(weights, tuple(listed["accuracy"]), words.n, words.device)
        listed["rounded"] = structs.asdict(rounded)
    ship(words.name, raw, listed)


if __name__ == "__main__":
    main()
