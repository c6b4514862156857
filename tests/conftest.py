"""Tests run side by side, one on each core: torch takes one thread, here and in the programs that tests start."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
