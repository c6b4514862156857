"""What must not be imported, and by whom."""

import subprocess
import sys

import pytest


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
