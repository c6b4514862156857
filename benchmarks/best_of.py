"""Of several tries, which one to keep? By energy, by the model's own probability, or by vote (docs/remedy-details.md).

    python benchmarks/best_of.py zoo:countdown-little --strata natural -n 200 --out build/best-of.jsonl

Every problem is decoded by top-1 confidence once and then with noise (`noisy`), each try with a seed of its own. Of the
first k of them, the record "best of k by WHAT" keeps for each problem the try with the lowest energy (four more passes
a try), the one that was the most probable while it was written, or the answer that the most tries agree on; the
earliest of equal ones. "any of k" is what a perfect judge would reach.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from arguments import how_many
from hardtail.core.records import Accuracy
from hardtail.core.trace_files import load_trace
from hardtail.core.types import Trace
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import chosen_strata, measured_instances
from hardtail.measuring.evaluate import Evaluating, evaluate, keep
from hardtail.measuring.statistics import wilson
from hardtail.measuring.subject import Subject, load_subject
from hardtail.measuring.trust import SCORES
from hardtail.policies.base import Policy
from hardtail.policies.confidence import Noisy, Top1

JUDGES = {"energy": "halves energy", "own probability": "own doubt"}
"""What to keep a try by, and the score of `eval --trust` that says so."""


def tried(subject: Subject, stratum: str, n: int, tries: int, decoding: Decoding) -> tuple[Accuracy, list[Trace]]:
    """The record of the first try, and the traces of all, with their scores of trust."""
    data_seed = subject.origin.data_seed
    assert data_seed is not None  # `main` has set it
    instances = measured_instances(subject.task, stratum, n, data_seed)
    policies: list[Policy] = [Top1(), *[Noisy()] * (tries - 1)]
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{seed}.npz" for seed in range(tries)]
        found = []
        for seed, policy in enumerate(policies):
            seeded = replace(decoding, seed=seed)
            named = subject, f"try {seed + 1}", policy, instances, stratum
            found.append(evaluate(*named, seeded, Evaluating(trust=True), trace=paths[seed]))
        return found[0].record, [load_trace(path) for path in paths]


def kept(subject: Subject, first: Accuracy, traces: Sequence[Trace]) -> Iterator[Accuracy]:
    """A record for every judge of the first 1, 2 … tries. Shapes: K tries, N instances, A answer cells."""
    answer_KNA = np.stack([trace.answer_NA for trace in traces])
    right_KN = np.stack([trace.exact_N for trace in traces])
    valid_KN = np.stack([subject.task.check(trace.instances, trace.answer_NA) for trace in traces])
    same_KKN = (answer_KNA[:, None] == answer_KNA[None]).all(axis=-1)
    passes_KN = np.array([trace.passes_N for trace in traces])
    for k in range(1, len(traces) + 1):
        made = float(passes_KN[:k].sum(axis=0).mean())
        doubts = {by: np.stack([trace.notes[score] for trace in traces[:k]]) for by, score in JUDGES.items()}
        doubts["vote"] = -same_KKN[:k, :k].sum(axis=0)
        for by, doubt_KN in doubts.items():
            best_N, each_N = doubt_KN.argmin(axis=0), np.arange(doubt_KN.shape[1])
            cost = k * SCORES[JUDGES[by]] if by in JUDGES and k > 1 else 0  # one try needs no judge
            right_N, valid_N = right_KN[best_N, each_N], valid_KN[best_N, each_N]
            yield _record(first, f"best of {k} by {by}", right_N, valid_N, made + cost)
        yield _record(first, f"any of {k}", right_KN[:k].max(axis=0), valid_KN[:k].max(axis=0), made)


def _record(
    first: Accuracy, policy: str, right_N: NDArray[np.bool_], valid_N: NDArray[np.bool_], passes: float
) -> Accuracy:
    right, n = int(right_N.sum()), len(right_N)
    found = {"exact_match": right / n, **wilson(right, n)._asdict(), "valid": float(valid_N.mean()), "passes": passes}
    return structs.replace(first, policy=policy, cell_accuracy=None, steps=None, wall=None, **found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a run, weights, or zoo:NAME")
    parser.add_argument("--strata", nargs="+", required=True)
    parser.add_argument("-n", type=how_many, default=200, help="instances of each stratum")
    parser.add_argument("--tries", type=how_many, default=8)
    parser.add_argument("--data-seed", type=int, default=1, help="of the instances")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32")
    parser.add_argument("--batch", type=how_many, help="rows at a time; affects time, not results")
    parser.add_argument("--out", type=Path, help="add the records to this file")
    asked = parser.parse_args()
    on_gpu = asked.device != "cpu"
    subject = load_subject(asked.model, device=asked.device, precision=asked.precision, compiled=on_gpu)
    subject = replace(subject, origin=replace(subject.origin, data_seed=asked.data_seed))
    decoding = Decoding(batch=asked.batch, device=asked.device)
    for stratum in chosen_strata(subject.task, asked.strata):
        first, traces = tried(subject, stratum, asked.n, asked.tries, decoding)
        records = list(kept(subject, first, traces))
        keep(asked.out, records)
        for record in records:
            print(f"{stratum:14} {record.policy:30} {record.exact_match:.4f} {record.passes:7.1f} passes", flush=True)


if __name__ == "__main__":
    main()
