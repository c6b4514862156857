"""Do faster precisions decode the same answers? Trained models on the GPU, instance by instance, beside plain fp32.

    python benchmarks/agreement.py zoo:maze-random zoo:addition-papl-paper --out results/agreement.jsonl

Every model decodes natural problems and its hardest stratum, by top-1 confidence and in its logical order, in fp32
without compilation and then, compiled or by the written passes, in every other precision. A line of the output is one
comparison and lists every instance whose answer differs, by its place among the drawn ones, with the side that was
right, if one was.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from arguments import how_many
from hardtail.core.files import add_line
from hardtail.core.provenance import origin
from hardtail.core.types import Instances, Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import chosen_policies, chosen_strata, measured_instances
from hardtail.measuring.subject import Subject, load_subject
from hardtail.models.precision import Precision
from hardtail.policies.base import Policy


def traced(subject: Subject, instances: Instances, policy: Policy) -> tuple[Trace, float]:
    """The trace, and instances per second once everything is compiled and captured."""
    decoding = Decoding(device=subject.device)
    decode(subject.denoiser, instances.take(slice(300)), policy, decoding)  # more than half a batch: the same shape
    began = time.monotonic()
    found = decode(subject.denoiser, instances, policy, decoding)
    return found, len(instances) / (time.monotonic() - began)


def compared(usual: Trace, fast: Trace) -> dict[str, Any]:
    """How many answers differ, and every one that does."""
    usual_N, fast_N = usual.exact_N, fast.exact_N
    different = np.flatnonzero(((usual.answer_NA != fast.answer_NA) & usual.instances.maskable_NA).any(axis=1))
    sides = {(True, False): "fp32", (False, True): "fast", (False, False): "none", (True, True): "both"}
    listed = [[int(i), sides[bool(usual_N[i]), bool(fast_N[i])]] for i in different]
    return {
        "n": len(usual),
        "right_fp32": int(usual_N.sum()),
        "right": int(fast_N.sum()),
        "different": len(different),
        "instances": listed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--precisions", nargs="+", choices=["tf32", "bf16"], default=["tf32", "bf16"])
    parser.add_argument("--orders", type=how_many, default=2, help="1: by top-1 confidence alone")
    parser.add_argument("-n", type=how_many, default=1000, help="instances of each of the two strata")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    for name in asked.models:
        usual = load_subject(name, device=asked.device)
        task = usual.task
        fast: dict[Precision, Subject] = {
            precision: load_subject(name, device=asked.device, precision=precision, compiled=asked.device != "cpu")
            for precision in asked.precisions
        }
        for stratum in dict.fromkeys(("natural", chosen_strata(task, ())[-1])):
            instances = measured_instances(task, stratum, asked.n, usual.seed)
            for policy_name, policy in chosen_policies(task, ("top1", *task.order_names)[: asked.orders]).items():
                one, usual_rate = traced(usual, instances, policy)
                for precision, subject in fast.items():
                    other, rate = traced(subject, instances, policy)
                    found = compared(one, other)
                    rates = {"rate_fp32": round(usual_rate, 1), "rate": round(rate, 1)}
                    head = {"model": name, "task": task.name, "stratum": stratum, "policy": policy_name}
                    record = head | {"precision": precision, "data_seed": usual.seed} | found | rates
                    line = json.dumps(record | origin(asked.device))
                    different, right = found["different"], f"{found['right_fp32']} -> {found['right']}"
                    print(
                        f"{name:26} {stratum:14} {policy_name:18} {precision}: {different:4} of {asked.n} differ, "
                        f"right {right}, {usual_rate:.0f} -> {rate:.0f} a second",
                        flush=True,
                    )
                    if asked.out:
                        add_line(asked.out, line.encode() + b"\n")


if __name__ == "__main__":
    main()
