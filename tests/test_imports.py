"""What must not be imported, and by whom."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hardtail


@pytest.mark.parametrize(
    "program",
    [
        "import hardtail",
        "import hardtail; hardtail.task('addition').sample(2, hardtail.Streams(0).named('x'))",
        "import sys; sys.argv = ['hardtail', '--help']\nfrom hardtail.cli import main\n"
        "try: main()\nexcept SystemExit as stop: assert stop.code == 0",
    ],
)
def test_no_torch(program: str) -> None:
    check = "\nimport sys; assert 'torch' not in sys.modules, 'torch was imported'"
    subprocess.run([sys.executable, "-c", program + check], check=True, stdout=subprocess.DEVNULL)


def test_decoding_does_not_import_training() -> None:
    program = "import sys, hardtail.decoding.loop; sys.exit(any('hardtail.training' in name for name in sys.modules))"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("module", ["typing", "pathlib", "inspect", "numpy", "tyro"])
@pytest.mark.parametrize("start", [["-m", "hardtail"], ["-c", "from hardtail.__main__ import main; main()"]])
def test_who_stops_a_command_while_it_is_imported_sees_no_traceback(
    start: list[str], module: str, tmp_path: Path
) -> None:
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt\n")  # as if Ctrl-C came just then
    places = os.pathsep.join([str(tmp_path), str(Path(hardtail.__file__).parents[1])])
    program = [sys.executable, *start, "--help"]
    done = subprocess.run(program, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": places})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
