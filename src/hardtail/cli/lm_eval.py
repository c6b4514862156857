"""`hardtail lm-eval`: the harness's own command line, with our tasks and our model type in it."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from hardtail.core.errors import HardtailError

INCLUDE = "--include_path"
HELP = """\
usage: hardtail lm-eval WORDS
           the words of `lm_eval`, with our tasks and --model hardtail
       hardtail lm-eval write DIR
           write our tasks as files for `lm_eval --include_path DIR`

  hardtail lm-eval ls tasks
  hardtail lm-eval run --tasks hardtail_addition_natural --limit 20 \\
      --model hardtail --model_args model=zoo:addition-papl-paper,policy=top1
  hardtail lm-eval run --tasks hardtail_addition --num_fewshot 4 \\
      --model hf --model_args pretrained=gpt2

--model_args of a hardtail model: model (as for `hardtail eval`), task, policy,
each. --metadata '{"n": 50, "seed": 1}' changes how many problems each stratum
has [100], and which. --path DIR: a folder with your own package.module:NAME.
`hardtail lm-eval run --help` shows the harness's own options."""


def main(words: Sequence[str]) -> None:
    if not words or words[0] in ("-h", "--help"):
        print(HELP)
        return
    if words[0] == "write":
        if len(words) != 2 or words[1].startswith("-"):
            raise HardtailError("give one folder to write to: hardtail lm-eval write DIR")
        _write(Path(words[1]))
        return
    if find_spec("lm_eval") is None:
        raise HardtailError("the harness is not installed: pip install 'hardtail[lm-eval]'")
    if any(word.startswith(INCLUDE) for word in words):
        raise HardtailError(f"{INCLUDE} is taken by our tasks; write them next to yours (`hardtail lm-eval write DIR`)")
    from lm_eval.__main__ import cli_evaluate

    import_module("hardtail.harness.model")  # it registers the model type
    from hardtail.harness.files import write_tasks

    with TemporaryDirectory() as folder:
        write_tasks(Path(folder))
        sys.argv = ["lm-eval", *words]
        if not {"-h", "--help"} & set(words):
            sys.argv += [INCLUDE, folder]
        cli_evaluate()


def _write(folder: Path) -> None:
    from hardtail.harness.files import write_tasks

    groups = write_tasks(folder)
    print(f"{len(list(folder.glob('hardtail*.yaml')))} files in {folder}; use them with")
    print(f"  lm_eval run {INCLUDE} {folder} --tasks {groups[1]} --model …")
