"""The numbers that the packages name or assume are what they were; `tests/golden_numbers.py` says which these are."""

import json
from importlib import import_module

from tests import golden_numbers


def test_numbers_of_the_packages() -> None:
    """A limit, a tolerance or a default that moves changes what is refused, judged or drawn, and no formula shows it.

    A change that is meant to move one records it anew with `python -m tests.golden_numbers`.
    """
    assert golden_numbers.numbers() == json.loads(golden_numbers.PATH.read_bytes())


def test_numbers_that_are_left_out_exist() -> None:
    for module, names in golden_numbers.NOT_PINNED.items():
        assert names <= vars(import_module(f"hardtail.{module}")).keys(), module
