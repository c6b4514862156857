"""`python -m hardtail` is the console script."""

from hardtail.cli import main

main()
