"""Sources: printed tables as files, every cell of which is judged, and clear words about files that are broken."""

import random
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import invalidate_caches
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest

from hardtail import HardtailError, cli
from hardtail.core.records import HALF_REVEALED
from hardtail.study.claims import Results, Verdict, all_claims
from hardtail.study.claims.base import Cell, Check
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.study.claims.figures import Metric, Reached, ShareRight, measured_as
from hardtail.study.claims.ledger import FILES, claim_named, source_named
from hardtail.study.claims.plain import Learns
from hardtail.study.claims.recovery import Recovery
from hardtail.study.claims.rules import AtLeast, AtMost, Level, Ratio, above, similar
from hardtail.study.claims.source import Paper
from tests.planted_results import Planted

TABLE = """
where = "Table 7"
task = "addition"
title = "A table"
stub = "chain"
schemes = { random = "Random", puma = "PUMA" }
strata = [
    { key = "4", row = "chain ≥ 4", of = { "chain>=4" = 100 } },
    { key = "both", row = "both", name = "all chains", of = { "chain>=4" = 100, "chain>=8" = 300 } },
]

[claim]
id = "other.{scheme}.{order}"
sentence = "{words}, {scheme_words} has these accuracies at {strata}."

[[orders]]
key = "lsb"
policy = "lsb"
words = "LSB-first"
heading = "LSB first"
numbers.4 = [0.5, 0.25]
numbers.both = [0.75, 1.0]
"""
STATEMENTS = """
where = "§1"

[claims."other.behind.{key}"]
each = { 4 = "on chains of 4 and more" }
sentence = "PUMA is behind {each}."
"""
MODULE = """
from other_paper import SOURCE
from hardtail.study.claims.rules import above

def claims():
    tables = SOURCE.about("addition")
    behind = [above(tables.cell("random", "lsb", "4"), tables.cell("puma", "lsb", "4"))]
    return tables.claims() + SOURCE.stated("said", {"other.behind.4": behind})
"""


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Another paper as a package outside hardtail."""
    folder = tmp_path / "other_paper"
    (folder / "tables").mkdir(parents=True)
    (folder / "tables" / "seven.toml").write_text(TABLE)
    (folder / "statements").mkdir()
    (folder / "statements" / "said.toml").write_text(STATEMENTS)
    (folder / "said.py").write_text(MODULE)
    module = "from hardtail.study.claims.source import Paper\nSOURCE = Paper(__name__, ('seven',), ('said',))\n"
    (folder / "__init__.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    invalidate_caches()
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "other_paper"]:
        del sys.modules[name]


def test_every_printed_number_is_judged_once() -> None:
    """A cell of a table that no claim is about would never be missed."""
    levels = Counter(
        check.cell
        for claim in all_claims().values()
        for check in claim.checks
        if isinstance(check, Level) and claim.where.startswith(("Table", "App.")) and not claim.id.startswith("data.")
    )
    tables = [SOURCE.table(name) for name in SOURCE.tables]
    cells = [
        table.cell(scheme, order, stratum)
        for table in tables
        for order in table.orders
        for stratum in table.rows
        for scheme in table.schemes
    ]
    assert levels == Counter(cells)
    assert len(cells) == 207


def test_half_reveal_is_read_as_exact_match(tmp_path: Path) -> None:
    """As the caption says, whatever the share of single characters."""
    claim, made = claim_named("countdown.reveal"), Planted(tmp_path)
    for cell in (cell for check in claim.checks for cell in check.cells):
        made.plant(cell.figure, 0.5)
    for record in (record for records in made.evaluations.values() for record in records):
        record |= {"token_accuracy": 1.0} if record["kind"] == "reveal" else {}
    judged = claim.judge(Results(made.written()))
    assert judged.verdict is Verdict.NOT
    assert {finding.mean for finding in judged.findings} == {0.5}


def test_no_table_file_is_left_out() -> None:
    held = files(SOURCE.package).joinpath("tables").iterdir()
    assert {f"{name}.toml" for name in SOURCE.tables} == {path.name for path in held}


def test_another_paper_is_another_package(paper: Path) -> None:
    source = Paper("other_paper", ("seven",), ("said",))
    random, puma, behind = source.claims()
    assert (random.id, puma.id, behind.id) == ("other.random.lsb", "other.puma.lsb", "other.behind.4")
    assert puma.sentence == "LSB-first, PUMA has these accuracies at 4, both."
    assert [(cell.paper, cell.n) for check in puma.checks for cell in check.cells] == [(0.25, 100), (1.0, 400)]
    assert (behind.sentence, behind.where) == ("PUMA is behind on chains of 4 and more.", "§1")
    assert puma.checks[1].about == "PUMA, lsb, all chains"
    assert behind.paper == "+0.250"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('where = "Table 7"', ""), "`where`"),
        (('stub = "chain"', 'stub = "chain"\nstrum = 3'), "`strum`"),
        (('policy = "lsb"', "policy = 3"), r"\$\.orders\[0\]\.policy"),
        (("[0.5, 0.25]", "[0.5, 25]"), r"\$\.orders\[0\]\.numbers"),
        (("[0.5, 0.25]", "[0.5]"), "orders.lsb.numbers.4"),
        (("numbers.4 = [0.5, 0.25]", ""), r"orders\.lsb\.numbers.*'4'"),
        (("numbers.4 =", "numbers.44 ="), r"orders\.lsb\.numbers.*'44'"),
        (("numbers.4 =", "numbers.4"), "line"),
        (("{strata}", "{stratums}"), r"`claim`.*'stratums'"),
        (('puma = "PUMA"', 'pumma = "PUMA"'), r"`schemes` has \['pumma'\]"),
        (('{ "chain>=4" = 100 }', "{}"), r"\$\.strata\[0\]\.of"),
        (('where = "Table 7"', 'extends = "eight"'), r"eight\.toml"),
    ],
)
def test_a_broken_table_is_named_with_its_key(paper: Path, change: tuple[str, str], told: str) -> None:
    name = paper.parent.name  # no other test has it, so that nothing else was read under it
    (paper / "tables" / f"{name}.toml").write_text(TABLE.replace(*change))
    with pytest.raises(HardtailError, match=told) as caught:
        Paper("other_paper", (name,), ()).about("addition")
    assert "eight" in told or f"{name}.toml" in str(caught.value)


def test_a_table_takes_the_rest_from_the_one_that_it_extends(paper: Path) -> None:
    (paper / "tables" / "more.toml").write_text('extends = "seven"\nwhere = "Table 8"\n')
    table = Paper("other_paper", ("more",), ()).table("more")
    assert (table.where, table.title, len(table.orders)) == ("Table 8", "A table", 1)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("{key}", "{kee}"), "statements/.*'kee'"),
        (("sentence", "sentense"), r"statements/.*sentense"),
        (("other.behind", "other.ahead"), r"differ in \['other\.ahead\.4', 'other\.behind\.4'\]"),
    ],
)
def test_a_broken_statement_is_named(paper: Path, change: tuple[str, str], told: str) -> None:
    name = paper.parent.name  # no other test has it, so that nothing else was read under it
    (paper / "statements" / f"{name}.toml").write_text(STATEMENTS.replace(*change))
    with pytest.raises(HardtailError, match=told):
        Paper("other_paper", (), ()).stated(name, {"other.behind.4": ()})


# -- one file ---------------------------------------------------------------------------------------------------------

MINE = """
title = "My claims"
settings = "two seeds"

[claims."mine.ahead"]
sentence = "LSB-first beats confidence on long chains."
where = "page 3"
reports = "no number"

[[claims."mine.ahead".checks]]
rule = "above"
of = { task = "addition", scheme = "puma", policy = "lsb", stratum = "chain>=28" }
than = { task = "addition", scheme = "puma", stratum = "chain>=28" }

[claims."mine.text"]
sentence = "It writes better poems."
where = "page 4"
elsewhere = "there are no poems here"
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    return path


def test_a_source_is_one_file_that_a_user_writes(mine: Path, tmp_path: Path) -> None:
    made = Planted(tmp_path / "results")
    for policy, value in (("lsb", 1.0), ("top1", 0.9)):
        for seed in (42, 43):
            made.plant(ShareRight("addition", "puma", policy, "chain>=28"), value, seed=seed)
    ahead, poems = (claim.judge(Results(made.written())) for claim in source_named(str(mine)).claims())
    assert (ahead.claim.settings, ahead.says, ahead.seeds) == ("two seeds", "holds", 2)
    assert (poems.verdict, poems.findings[0].remark) == (Verdict.UNMEASURED, "there are no poems here")


def test_the_command_takes_a_source(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Planted(tmp_path / "results").written()
    words = ["hardtail", "claims", "--source", str(mine), "--results", str(store.folder), "--markdown"]
    monkeypatch.setattr(sys, "argv", words)
    cli.main()
    out = capsys.readouterr().out
    assert "The claims of My claims" in out
    assert "| mine.ahead |" in out
    assert "addition.puma.lower" not in out


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('rule = "above"', 'rule = "abov"'), "abov"),
        (('policy = "lsb"', 'policy = "lbs"'), "no policy 'lbs' for addition; choose from top1"),
        (('stratum = "chain>=28"', 'stratum = "chian>=28"'), "chian"),
        (
            ('task = "addition", scheme = "puma", policy', 'task = "adition", scheme = "puma", policy'),
            "no task 'adition'",
        ),
        (('where = "page 3"', ""), "`where`"),
        (('elsewhere = "there are no poems here"', ""), "either `checks` or `elsewhere`"),
        (('title = "My claims"', "title = "), r"not valid TOML .*line 2"),
        (('title = "My claims"', f"title = {'[' * 2000}{']' * 2000}"), "more than 64 levels deep"),
        (('title = "My claims"', f"{'a.' * 2000}b = 1"), "more than 64 levels deep"),
        (('rule = "above"', 'rule = "level"'), r"claim 'mine.ahead'.* `printed` - at `\$.checks\[0\].of`"),
        (('policy = "lsb"', 'policy = "threshold,q=1"'), "'q=1' does not set a field"),
        (('policy = "lsb"', 'policy = "ladder,rungs=os:path"'), "no policy 'ladder,rungs=os:path' for addition"),
        (('policy = "lsb"', 'metric = "token_accuracy"'), "'top1' has no 'token_accuracy'.* one of exact_match"),
        (('policy = "lsb"', 'policy = "one pass, half revealed", metric = "valid"'), "one of exact_match, token_acc"),
        (('policy = "lsb"', "printed = 98.2"), "`printed` is 98.2, and an accuracy is a share"),
        (('policy = "lsb"', 'policy = "lsb", reached = 0.5'), "`reached` is of natural problems under top1"),
        (('policy = "lsb"', "printed = nan"), r"checks\[0\].of.printed"),
        (('rule = "above"', 'rule = "times"\ntimes = 0'), r"checks\[0\].times"),
        (
            ("elsewhere = ", 'checks = [{ rule = "learns", task = "adition", scheme = "puma" }] # '),
            "claim 'mine.text': there is no task 'adition'",
        ),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(mine: Path, change: tuple[str, str], told: str) -> None:
    mine.write_text(MINE.replace(*change, 1))
    with pytest.raises(HardtailError, match=told) as caught:
        source_named(str(mine))
    assert str(mine) in str(caught.value)


OF = '{ task = "maze", scheme = "puma", policy = "random", stratum = "corridor>=8", printed = 0.5, n = 20 }'
OTHER = '{ task = "maze", scheme = "papl", printed = 0.7 }'
ONE = Cell(ShareRight("maze", "puma", "random", "corridor>=8"), 0.5, 20)
TWO = Cell(ShareRight("maze", "papl", "top1", "natural"), 0.7)


@pytest.mark.parametrize(
    ("written", "check"),
    [
        (f'rule = "level"\nof = {OF}\ntolerance = 0.2', Level(ONE, 0.2)),
        (f'rule = "at least"\nof = {OF}\nbound = 0.3\ntolerance = 0.1', AtLeast(ONE, 0.3, 0.1)),
        (f'rule = "at most"\nof = {OF}\nbound = 0.3', AtMost(ONE, 0.3)),
        (f'rule = "above"\nof = {OF}\nthan = {OTHER}', above(ONE, TWO)),
        (f'rule = "similar"\nof = {OF}\nto = {OTHER}\nmargin = 0.3', similar(ONE, TWO, 0.3)),
        (f'rule = "times"\nof = {OF}\nthan = {OTHER}\ntimes = 4.0', Ratio((ONE,), (TWO,), 4.0)),
        (f'rule = "times"\nof = {OF}\nthan = {OTHER}\ntimes = 4.0\nfailures = true', Ratio((ONE,), (TWO,), 4.0, True)),
        (f'rule = "recovery"\nof = {OF}\nby = {OTHER}', Recovery(ONE, TWO)),
        ('rule = "learns"\ntask = "maze"\nscheme = "puma"', Learns("maze", "puma")),
        (
            'rule = "at most"\nbound = 9.0\nof = { task = "maze", scheme = "puma", reached = 0.5, printed = 7.0 }',
            AtMost(Cell(Reached("maze", "puma", 0.5), 7.0), 9.0),
        ),
    ],
)
def test_a_rule_of_a_file_is_the_check_that_it_says(written: str, check: Check, mine: Path) -> None:
    above_at = MINE.index('rule = "above"')
    mine.write_text(MINE[:above_at] + written + "\n" + MINE[MINE.index('[claims."mine.text"]') :])
    claim = next(iter(source_named(str(mine)).claims()))
    assert claim.checks == (check,)


@pytest.mark.parametrize("rule", [f'rule = "level"\nof = {OTHER}', f'rule = "recovery"\nof = {OTHER}\nby = {OTHER}'])
def test_a_rule_that_needs_a_printed_number_says_so(rule: str, mine: Path) -> None:
    above_at = MINE.index('rule = "above"')
    mine.write_text(MINE[:above_at] + rule.replace(", printed = 0.7", "") + "\n")
    with pytest.raises(HardtailError, match="a figure of this rule needs `printed`"):
        source_named(str(mine))


@pytest.mark.parametrize(("rule", "field"), [('"level"', "tolerance"), ('"similar"\nto = {}', "margin")])
def test_training_steps_are_not_compared_by_what_is_near_for_shares(rule: str, field: str, mine: Path) -> None:
    step = '{ task = "maze", scheme = "puma", reached = 0.5, printed = 7000 }'
    said = f"rule = {rule}\nof = {step}\n".replace("{}", step)
    above_at = MINE.index('rule = "above"')
    mine.write_text(MINE[:above_at] + said)
    with pytest.raises(HardtailError, match=f"needs a `{field}`, in steps"):
        source_named(str(mine))
    mine.write_text(MINE[:above_at] + said + f"{field} = 500\n")
    assert source_named(str(mine)).claims()


def test_a_stratum_is_the_one_that_is_recorded_in_whatever_order_it_is_written(mine: Path) -> None:
    said = 'rule = "at least"\nbound = 0.1\nof = { task = "countdown", scheme = "puma", stratum = "m=1-3, heldout=1" }'
    mine.write_text(MINE[: MINE.index('rule = "above"')] + said + "\n")
    (claim,) = source_named(str(mine)).claims()
    assert claim.checks == (AtLeast(Cell(ShareRight("countdown", "puma", "top1", "heldout=1,m=1-3")), 0.1),)


@pytest.mark.parametrize("written", ["threshold,p=0.8", "threshold, p=0.8", " threshold , p=0.8, half revealed"])
def test_a_policy_is_the_one_that_is_recorded_with_or_without_blanks(mine: Path, written: str) -> None:
    said = f'rule = "at least"\nbound = 0.1\nof = {{ task = "countdown", scheme = "puma", policy = "{written}" }}'
    mine.write_text(MINE[: MINE.index('rule = "above"')] + said + "\n")
    (claim,) = source_named(str(mine)).claims()
    recorded = "threshold,p=0.8" + ", half revealed" * written.endswith("revealed")
    assert claim.checks == (AtLeast(Cell(ShareRight("countdown", "puma", recorded, "natural")), 0.1),)


def test_whatever_a_file_may_say_can_be_judged(mine: Path, tmp_path: Path) -> None:
    """Every figure is recorded, so that each rule has to compute its verdict."""
    rng, made = random.Random(0), Planted(tmp_path / "results")
    policies = ["top1", "threshold,p=0.8", "top1, half revealed", HALF_REVEALED]
    metrics: list[Metric] = ["exact_match", "cell_accuracy", "valid", "token_accuracy"]
    numbers = ["0", "0.5", "1.0", "3", "98.2", "-1", "nan", "inf"]
    for scheme, seed in product(("puma", "papl"), (42, 43)):
        made.plant(Reached("countdown", scheme, 0.5), 30_000, seed=seed)
        for policy, metric in product(policies, metrics):
            if metric in measured_as(policy).__struct_fields__:
                made.plant(ShareRight("countdown", scheme, policy, "heldout=1", metric), 0.5, seed=seed)
    results, judged = Results(made.written()), Counter[Verdict]()

    def figure(scheme: str) -> str:
        accuracy = f'policy = "{rng.choice(policies)}", metric = "{rng.choice(metrics)}", stratum = "heldout=1"'
        of = rng.choice([accuracy, accuracy, "reached = 0.5"])
        printed = rng.choice(["", f", printed = {rng.choice(numbers)}, n = 500"])
        return f'{{ task = "countdown", scheme = "{scheme}", {of}{printed} }}'

    rules = {
        "level": "tolerance = {number}",
        "at least": "bound = {number}",
        "above": "than = {other}",
        "similar": "to = {other}\nmargin = {number}",
        "times": "than = {other}\ntimes = {number}\nfailures = {failures}",
        "recovery": "by = {other}",
    }
    for _ in range(1000):
        rule, more = rng.choice([*rules.items()])
        given = {"other": figure("papl"), "number": rng.choice(numbers), "failures": rng.choice(["true", "false"])}
        said = f'rule = "{rule}"\nof = {figure("puma")}\n{more.format(**given)}\n'
        mine.write_text(MINE[: MINE.index('rule = "above"')] + said)
        try:
            claims = source_named(str(mine)).claims()
        except HardtailError:
            continue
        judged.update(claim.judge(results).verdict for claim in claims)
    assert judged.total() - judged[Verdict.UNMEASURED] > 100


def test_unknown_names_are_told_the_known_ones(mine: Path, tmp_path: Path) -> None:
    with pytest.raises(HardtailError, match=r"choose from confidence-shortcut.*puma.*toml"):
        source_named("pumma")
    with pytest.raises(HardtailError, match="cannot be read"):
        source_named(str(tmp_path / "none.toml"))
    with pytest.raises(HardtailError, match=r"did you mean mine\.ahead"):
        claim_named("mine.ahed", source_named(str(mine)))


@pytest.mark.parametrize("name", sorted(path.stem for path in FILES.glob("*.toml")))
def test_every_shipped_source_can_be_judged(name: str, tmp_path: Path) -> None:
    """Each claim has its words and settings; an empty store leaves all of them open."""
    results = Results(Planted(tmp_path).written())
    for claim in source_named(name).claims():
        assert claim.sentence.endswith(".")
        assert claim.where
        judged = claim.judge(results)
        assert judged.verdict is Verdict.UNMEASURED
        assert judged.findings[0].remark
        assert claim.settings or "no" in judged.findings[0].remark
