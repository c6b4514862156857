"""The demo's decodes and a small training, alone and beside as many busy processes as there are cores.

    python benchmarks/contention.py                    # both, three rounds, medians
    python benchmarks/contention.py --work decode --models 3 -n 100     # all that the demo decodes of three models
    python benchmarks/contention.py --ways ours --rounds 5              # without the slow one

Each is measured in two ways, in turn. *Split* is how it was done before: torch splits every product over the cores, and
threads that wait for each other spin. *Ours* decodes with single-threaded workers, splits no tiny training step, and
lets threads wait asleep. How OpenMP waits is settled when torch is imported, so each way has a process of its own,
which waits while another is measured.

On a machine that other programs use too, the seconds mean little. *Waits* are counted by the kernel and do not depend
on that: how often, alone, a thread went to sleep until another one was done. Work that never waits is slowed down by
the share of the cores that it loses, and by nothing else.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median

from arguments import how_many

WAYS = ("split", "ours")
WORKS = ("decode", "train")
STEPS = 40
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
"""A busy process; it ends with the one that started it."""


def prepared_decode(way: str, n: int, models: int) -> Callable[[], None]:
    """What the demo decodes: every stratum in both orders."""
    from hardtail import zoo
    from hardtail.core.pretrained import ZOO
    from hardtail.decoding.loop import decode
    from hardtail.measuring.choices import measured_instances
    from hardtail.measuring.subject import load_subject
    from hardtail.models.denoiser import Function
    from hardtail.policies.named import policy_named
    from hardtail.show.demo import shown_task
    from hardtail.show.story import CONFIDENCE

    shown = shown_task().showcase()
    shipped = [model.name for model in zoo.models() if model.task == shown_task().name][:models]
    subjects = [load_subject(ZOO + name) for name in shipped]
    task = subjects[0].task
    instances = [measured_instances(task, stratum, n, seed=0) for stratum in (shown.ordinary, shown.hard)]
    policies = [policy_named(name, task.order_names) for name in (CONFIDENCE, shown.order)]
    # A function is not known to be ours: it is called from one thread, with as many as torch likes inside.
    denoisers = [
        Function(subject.denoiser.logits, subject.denoiser.mask_id) if way == "split" else subject.denoiser
        for subject in subjects
    ]

    def work() -> None:
        for denoiser in denoisers:
            for part in instances:
                for policy in policies:
                    decode(denoiser, part, policy)

    decode(denoisers[0], instances[0].take(slice(1)), policies[0])
    return work


def prepared_train(way: str, name: str) -> Callable[[], None]:
    """Some steps of a recipe, without probes and decodes."""
    import torch

    from hardtail.models.transformer import Transformer
    from hardtail.schemes.base import Corpus
    from hardtail.study.recipes import recipe_named
    from hardtail.tasks import datasets as data
    from hardtail.training.run import cpu_threads
    from hardtail.training.step import Step

    recipe = recipe_named(name)
    if way == "ours":
        torch.set_num_threads(cpu_threads(recipe))
    instances = data.build(recipe.task, data.TRAIN, recipe.seed, recipe.train_size).instances
    corpus = Corpus.on(torch.device("cpu"), instances, recipe.task.vocabulary.mask_id, recipe.watch.order)
    model = Transformer(recipe.shape).initialise(torch.Generator().manual_seed(recipe.seed)).train()
    step = Step(model, recipe.scheme, corpus, recipe.optimiser, batch=recipe.batch, steps=recipe.steps, seed=0)
    step()

    def work() -> None:
        for _ in range(STEPS):
            step()

    return work


def serve(way: str, work: str, n: int, models: int, recipe: str) -> None:
    """Do the work for every line that is read, and print the seconds it took and how often a thread waited."""
    if way == "split":
        import torch  # noqa: F401  (before hardtail, so that threads spin)
    run = prepared_decode(way, n, models) if work == "decode" else prepared_train(way, recipe)
    print("ready", flush=True)
    for _ in sys.stdin:
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        run()
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        print(wall, after - before, flush=True)


@contextmanager
def server(way: str, work: str, n: int, models: int, recipe: str) -> Iterator[Callable[[], tuple[float, int]]]:
    """A process that does the work in one way; gives the function that has it done once: seconds and waits."""
    command = [sys.executable, __file__, "--serve", way, "--work", work, "-n", str(n), "--models", str(models)]
    command += ["--recipe", recipe]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asks, answers = process.stdin, process.stdout
        answers.readline()

        def measured() -> tuple[float, int]:
            print(file=asks, flush=True)
            wall, waits = answers.readline().split()
            return float(wall), int(waits)

        try:
            yield measured
        finally:
            process.kill()


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Processes that use a core each."""
    with ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(process.kill)
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("-n", type=how_many, default=64, help="sums of each stratum [64]")
    parser.add_argument("--models", type=how_many, default=1, help="shipped models to decode [1]")
    parser.add_argument("--recipe", default="addition-puma-smoke", help="what to train [%(default)s]")
    parser.add_argument("--rounds", type=how_many, default=3, help="measurements of each, of which the median is shown")
    parser.add_argument("--busy", type=how_many, help="busy processes [as many as there are cores]")
    parser.add_argument("--serve", choices=WAYS, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.serve:
        serve(words.serve, words.work[0], words.n, words.models, words.recipe)
        return
    others = words.busy or len(os.sched_getaffinity(0))
    print(f"work    way      alone  beside {others} busy processes   ratio    waits", flush=True)
    for work in words.work:
        with ExitStack() as stack:
            servers = {
                way: stack.enter_context(server(way, work, words.n, words.models, words.recipe)) for way in words.ways
            }
            alone: dict[str, list[float]] = {way: [] for way in servers}
            beside: dict[str, list[float]] = {way: [] for way in servers}
            waits: dict[str, list[int]] = {way: [] for way in servers}
            for _ in range(words.rounds):
                for way, measured in servers.items():
                    wall, waited = measured()
                    alone[way].append(wall)
                    waits[way].append(waited)
                with busy(others):
                    for way, measured in servers.items():
                        beside[way].append(measured()[0])
        for way in servers:
            one, two = median(alone[way]), median(beside[way])
            ratio = median(slow / fast for fast, slow in zip(alone[way], beside[way], strict=True))
            print(f"{work:7} {way:6} {one:6.2f} s {two:22.2f} s {ratio:7.2f} {median(waits[way]):8,.0f}", flush=True)
        if len(servers) == len(WAYS):
            faster = median(split / ours for split, ours in zip(alone["split"], alone["ours"], strict=True))
            print(f"{work:7} alone, split takes {faster:.2f} times as long as ours (median of pairs)", flush=True)


if __name__ == "__main__":
    main()
