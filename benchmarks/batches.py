"""Whether what is decoded depends on its neighbours: the same sums in batches of other sizes, and in another order.

    python benchmarks/batches.py                                 # on a GPU where there is one
    python benchmarks/batches.py zoo:addition-papl5 --precision fp32 bf16 -n 500

On a CPU every figure must be 100 % and 0: forward passes there always have the same number of rows. On a GPU matrix
products of another shape may be summed in another order; this says how often that shows.
"""

import argparse
from functools import partial

import numpy as np
import torch

from arguments import how_many
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.decoding.sizes import GPU_BATCH
from hardtail.measuring.choices import measured_instances
from hardtail.measuring.subject import load_subject
from hardtail.policies.named import policy_named


def compared(one: Trace, other: Trace) -> str:
    """How much of a decode is the same in another: answers, whole sequences of commits, probabilities."""
    answers = (one.answer_NA == other.answer_NA).all(axis=1).mean()
    commits = ((one.cell_NT == other.cell_NT) & (one.token_NT == other.token_NT)).all(axis=1)
    apart = np.abs(one.prob_NT - other.prob_NT)[commits].max(initial=0.0)
    return f"{answers:12.2%} {commits.mean():12.2%} {apart:14.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="zoo:addition-random")
    parser.add_argument("--stratum", default="chain>=28")
    parser.add_argument("-n", type=how_many, default=512 if torch.cuda.is_available() else 32)
    parser.add_argument("--batches", nargs="+", type=how_many, default=[1, 7, 64, 128])
    parser.add_argument("--precision", nargs="+", choices=("fp32", "tf32", "bf16"), default=["fp32"])
    words = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"{torch.cuda.get_device_name() if device == 'cuda' else 'CPU'}, torch {torch.__version__}, {words.model}")
    print(f"precision  beside batches of {GPU_BATCH}     same answers same commits probabilities differ by")
    for precision in words.precision:
        subject = load_subject(words.model, device=device, precision=precision)
        instances = measured_instances(subject.task, words.stratum, words.n, subject.seed)
        run = partial(decode, subject.denoiser, policy=policy_named("top1"))
        usual = run(instances, decoding=Decoding(device=device, batch=GPU_BATCH))
        for batch in words.batches:
            other = run(instances, decoding=Decoding(device=device, batch=batch))
            print(f"{precision:10} batches of {batch:<13} {compared(usual, other)}", flush=True)
        backwards = np.arange(len(instances))[::-1]
        turned = run(instances.take(backwards), decoding=Decoding(device=device, batch=GPU_BATCH)).take(backwards)
        print(f"{precision:10} the other way round      {compared(usual, turned)}", flush=True)


if __name__ == "__main__":
    main()
