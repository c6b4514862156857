"""Tables as people see them: cells in words, Markdown, and what gives way on a narrow screen."""

import pytest

from hardtail.core.tables import Table, percent, plain, probability, tabulate, text


def test_cells_of_a_table() -> None:
    cells = [None, True, False, 1234567, 9999.4, 9999.5, -9999.6, 10000.6, 1e12, 0.123456, "a"]
    shown = ["–", "yes", "no", "1,234,567", "9999", "10,000", "-10,000", "10,001", "1e+12", "0.1235", "a"]
    assert [text(cell) for cell in cells] == shown


def test_a_table_as_people_see_it() -> None:
    table = Table("things", ("name", "n | m"), (("a|b", 1), ("long", 23456)))
    assert table.markdown() == "**things**\n\n| name | n \\| m |\n| :-- | --: |\n| a\\|b | 1 |\n| long | 23,456 |\n"
    lines = [line.rstrip() for line in table.plain(40).splitlines()]
    assert lines == ["things", "name   n | m", "────────────", "a|b        1", "long  23,456"]


def test_a_table_without_headings_begins_with_its_rows() -> None:
    assert Table("card", ("", ""), (("claim", "it holds"), ("seeds", 1))).plain(40).splitlines() == [
        "card",
        "claim  it holds",
        "seeds  1",
    ]


def test_all_decimals_of_a_table_are_the_same_also_in_its_parts() -> None:
    table = Table("shares", ("name", "a" * 30, "b" * 30, "n"), (("x", 1.0, 0.9048, 3), ("y", 12345.0, None, 4)), 2)
    assert table.texts() == [["x", "1.00", "0.90", "3"], ["y", "12,345.00", "–", "4"]]
    assert [part.texts()[0] for part in table.parts(40)] == [["x", "1.00"], ["x", "0.90", "3"]]


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (1.0, "1.000"),
        (0.0, "0.000"),
        (0.9994, "0.999"),
        (0.99994, "0.9999"),
        (0.999996, "0.999996"),
        (0.0004, "0.0004"),
    ],
)
def test_what_is_nearly_right_does_not_look_right(value: float, printed: str) -> None:
    assert text(value, 3) == printed


def test_columns_in_which_nothing_is_said_can_be_left_out() -> None:
    table = Table("t", ("a", "b", "c"), ((1, "", 0.25), (None, None, None)), 1).without_empty_columns()
    assert table == Table("t", ("a", "c"), ((1, 0.25), (None, None)), 1)


def test_a_column_of_phrases_is_not_squeezed_to_its_longest_word() -> None:
    phrase = "one two three four five six seven eight nine ten"
    table = Table("t", ("#", "of", *(f"number {place}" for place in range(9))), ((1, phrase, *range(9)),))
    first, *_ = table.parts(80)
    assert sum(word in plain(first.rich(80)) for word in phrase.split()) == 10
    assert len(plain(first.rich(80)).splitlines()) <= 4 + 4  # title, heading of two lines, rule, and the phrase
    assert len(table.parts(80)) == 2


def test_a_nested_result_as_tables() -> None:
    held = {
        "a_b": 1,
        "of": {"x": {"n": 1, "deep": {"k": 2}}, "y": {"n": 3, "deep": {"k": 4}}},
        "list": [{"p": 1, "q": None}, {"p": 2, "q": "z"}],
        "inner": {"only": {"one": 1.5}, "odd": {"two": 2}},
        "empty": {},
        "numbers": [1, 2],
    }
    found = [(table.title, table.columns, table.rows) for table in tabulate("t", held)]
    assert found == [
        ("t", ("", "value"), (("a b", 1),)),
        ("t: of", ("", "n"), (("x", 1), ("y", 3))),
        ("t: of, x: deep", ("", "value"), (("k", 2),)),
        ("t: of, y: deep", ("", "value"), (("k", 4),)),
        ("t: list", ("p", "q"), ((1, None), (2, "z"))),
        ("t: inner: only", ("", "value"), (("one", 1.5),)),
        ("t: inner: odd", ("", "value"), (("two", 2),)),
    ]


def test_a_table_fits_the_screen_exactly_or_in_parts() -> None:
    """Nothing gives way while everything fits; then the widest column that can wrap does, and no word is broken."""
    table = Table("", ("name", "words", "n"), (("a", "some long words", 1),))
    assert table.width == 24
    fits, wraps = (table.plain(width).splitlines() for width in (24, 23))
    assert fits[-1] == "a     some long words  1"
    assert [line.rstrip() for line in wraps[-2:]] == ["a     some long       1", "      words"]
    assert [part.columns for part in table.parts(14)] == [("name", "words", "n")]
    assert [part.columns for part in table.parts(13)] == [("name", "words"), ("name", "n")]
    titled = Table("t", ("name", "words", "n"), (("a", "some long words", 1),))
    assert [part.title for part in titled.parts(13)] == ["t", "t, continued"]


def test_shares_in_words() -> None:
    shares = [None, 0.0, 0.001, 0.0099, 0.01, 0.5, 0.99, 0.991, 0.999, 1.0]
    said = ["–", "0 %", "under 1 %", "under 1 %", "1 %", "50 %", "99 %", "over 99 %", "over 99 %", "100 %"]
    assert [percent(share) for share in shares] == said


def test_a_first_column_of_sentences_wraps_so_that_no_number_breaks() -> None:
    sentence = "hidden cells in places that training rarely had, under random masking"
    table = Table("figures", ("figure", "ours", "seeds"), ((sentence, "0.766 [0.750, 0.782]", 1),))
    shown = table.plain(60)
    assert "continued" not in shown
    assert "0.766 [0.750, 0.782]" in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_probabilities_are_never_exactly_certain() -> None:
    values = [1.0, 0.99995, 0.9999, 0.9996, 0.9994, 0.5, 0.0012, 0.0004, 0.00001]
    said = ["> 0.9999", "> 0.9999", "0.9999", "0.9996", "0.999", "0.500", "0.001", "0.0004", "< 0.0001"]
    assert [probability(value).replace("\N{NO-BREAK SPACE}", " ") for value in values] == said
    assert probability(0.5, "= ") == "= 0.500"
