"""Put a recorded run's weights into the zoo that ships with the package.

    python benchmarks/add_to_zoo.py addition-puma runs/addition-puma-tf32-s42 PUMA "PUMA, released settings"

The accuracy that the zoo lists is the recorded one (`results/`), of the weights that are shipped.
"""

import argparse
import json
from pathlib import Path

from hardtail import zoo
from hardtail.core.files import atomic, file_hash
from hardtail.measuring.subject import load_subject
from hardtail.study.store import Store


def _add(name: str, weights: Path, **listed: object) -> None:
    """Copy the weights into the zoo and list them."""
    path, models = zoo.FOLDER / f"{name}.safetensors", zoo.FOLDER / "zoo.json"
    held = json.loads(models.read_bytes()) if models.exists() else {}
    with atomic(path) as file:
        file.write(weights.read_bytes())
    with atomic(models) as file:
        file.write(
            json.dumps(held | {name: listed | {"sha256": file_hash(path)}}, indent=1, ensure_ascii=False).encode()
            + b"\n"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="what it is called in the zoo")
    parser.add_argument("run", type=Path, help="the run directory")
    parser.add_argument("scheme", help="what it was trained with, such as 'PAPL, α = 1'")
    parser.add_argument("about", help="what it is, in a few words")
    parser.add_argument("--checkpoint", choices=("last", "best_probe"), default="last")
    parser.add_argument("--hard", help="the stratum listed next to natural [the hardest of the task's gallery]")
    words = parser.parse_args()
    subject = load_subject(str(words.run), kind=words.checkpoint)
    task = subject.task
    policies = "top1", *task.order_names[:1]
    accuracy: dict[str, dict[str, float]] = {stratum: {} for stratum in ("natural", words.hard or task.gallery()[1])}
    for run in Store(Path("results")).runs():
        for record in run.accuracies if run.name == words.run.name else ():
            if record.checkpoint == words.checkpoint and record.stratum in accuracy and record.policy in policies:
                accuracy[record.stratum][record.policy] = record.exact_match
    _add(
        words.name,
        words.run / f"{words.checkpoint}.safetensors",
        run=words.run.name,
        task=task.name,
        scheme=words.scheme,
        kind=words.checkpoint,
        about=words.about,
        accuracy=accuracy,
        licence="Apache-2.0",
    )
    print(f"{words.name}: {accuracy}")


if __name__ == "__main__":
    main()
