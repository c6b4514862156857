"""Ship a recorded decode: a problem that confidence fails and the logical order solves.

    hardtail eval runs/maze-papl-s42 --strata 'corridor>=60' -n 10 --policies top1 dead_end_filling --traces looks
    python benchmarks/add_look.py looks --policies top1 dead_end_filling --model "PAPL, α = 5"

Both traces of each stratum are read; of the problems that they share, the first `-n` that show the difference are kept,
or, where the two orders end alike, the first that both get wrong.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from arguments import how_many
from hardtail.core.errors import HardtailError
from hardtail.core.trace_files import load_trace, save_trace
from hardtail.zoo import LOOKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="the folder that `eval --traces` wrote")
    parser.add_argument("--policies", nargs=2, required=True, help="confidence, then the logical order")
    parser.add_argument("--model", required=True, help="what the model is called on the page")
    parser.add_argument("-n", type=how_many, default=1, help="how many problems to keep")
    asked = parser.parse_args()
    held = [load_trace(path) for path in sorted(asked.traces.rglob("*.npz"))]
    pair = [trace for policy in asked.policies for trace in held if trace.about["policy"] == policy]
    if len(pair) != 2 or not np.array_equal(*(trace.instances.tokens_NL for trace in pair)):
        raise HardtailError(f"{asked.traces} must hold one trace of each policy, of the same problems")
    by_confidence, in_order = pair
    telling_N = ~by_confidence.exact_N & in_order.exact_N
    chosen = np.flatnonzero(telling_N if telling_N.any() else ~by_confidence.exact_N)[: asked.n]
    if not chosen.size:
        raise HardtailError("confidence solves all of these problems; decode harder ones")
    LOOKS.mkdir(exist_ok=True)
    for trace in pair:
        path = LOOKS / f"{trace.about['task']}.{trace.about['policy']}.npz"
        about = {**trace.about, "model": asked.model}
        save_trace(path, replace(trace.take(chosen), about=about))
        print(f"{path}: {len(chosen)} of {len(trace)}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
