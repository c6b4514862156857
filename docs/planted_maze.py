"""Write a trace of mazes that a planted denoiser decoded, to draw before a maze model is trained.

python docs/planted_maze.py planted.npz && hardtail report planted.npz --figures figures
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.planted_other import local_maze

import hardtail
from hardtail.decode import decode
from hardtail.policies.named import policy_named
from hardtail.tasks.maze import Maze
from hardtail.traces import save_trace

MODEL, NOTE = "planted denoiser", "not a trained model"


def main(path: Path) -> None:
    task, stratum = Maze(), "corridor>=20"
    instances = task.sample(12, hardtail.Streams(0).named("figures/maze"), stratum)
    about = {"task": task.name, "config": task.config(), "policy": "top1", "stratum": stratum}
    about |= {"model": MODEL, "note": NOTE}
    save_trace(path, decode(local_maze(task, instances, 6), instances, policy_named("top1"), about=about))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
