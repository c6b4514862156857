"""The decoder theatre in a terminal: watch a decode cell by cell, or print its commits if there is no screen."""

from hardtail.show.theatre.theatre import Theatre, open_theatre
from hardtail.show.theatre.watch import print_commits, watch

__all__ = ["Theatre", "open_theatre", "print_commits", "watch"]
