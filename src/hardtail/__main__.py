"""`python -m hardtail` is the console script."""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109
    del sys.path[0]  # files in the current folder are not imported by chance, just as with the script

from hardtail.cli import main

main()
