"""The console script, and `python -m hardtail`."""

import os
import sys


def main() -> None:
    """Entry point: import the command line and run it; Ctrl-C while it is imported ends quietly."""
    try:
        from hardtail.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109
        del sys.path[0]  # files in the current folder are not imported by chance, just as with the script
    main()
