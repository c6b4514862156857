"""`hardtail claims` as a person types it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hardtail import HardtailError, cli
from hardtail.core.records import as_json
from hardtail.study import store as store_module
from hardtail.study.claims import Results, Verdict, all_claims, claim_named, judge
from hardtail.study.claims.ledger import _short, source_named
from hardtail.study.runs import diagnosed_strata
from hardtail.study.store import Store, default_results
from tests.planted_results import Planted, as_printed, diagnosis_of, together

# -- what a person sees ---------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Table 1's PUMA and random rows as the paper has them, with the other confidence beside them."""
    made = Planted(tmp_path / "results")
    claim = claim_named("addition.puma.lower")
    for figure, value in together(claim, as_printed).items():
        made.plant(figure, value, n=500)
        for other in figure.beside():
            made.plant(other, 0.111, n=500)
    return made.written().folder


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["hardtail", "claims", *map(str, words)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return command


def test_the_ledger_has_a_row_for_every_claim_and_counts_verdicts(run: Run, recorded: Path) -> None:
    code, out, _ = run("--results", recorded, "--markdown")
    assert code == 0
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in out.splitlines()}
    assert all_claims().keys() <= rows.keys()
    assert "| one seed: holds |" in rows["addition.puma.lower"]
    assert "| not measured |" in rows["maze.puma.lower"]
    judged = judge(Results(Store(recorded)))
    for verdict in Verdict:
        assert f"| {verdict.value} | {sum(item.verdict is verdict for item in judged)} |" in out


def test_claims_under_a_word_are_whole_sentences(run: Run, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("addition.puma", "--results", recorded)
    assert claim_named("addition.puma.lower").sentence in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80


def test_nothing_in_the_list_is_cut_short(run: Run, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("--results", recorded)
    assert max(map(len, out.splitlines())) <= 80
    head, rows = out.split("\n\n")
    judged = judge(Results(Store(recorded)))
    counted = [(verdict.value, [item for item in judged if item.verdict is verdict]) for verdict in Verdict]
    single = {verdict: sum(item.one_seed for item in items) for verdict, items in counted}
    by_one = {verdict: f" ({count}¹)" for verdict, count in single.items() if count}
    counts = (f"{verdict} {len(items)}{by_one.get(verdict, '')}" for verdict, items in counted if items)
    assert " ".join(head.split()).startswith(f"{len(judged)} claims: {', '.join(counts)} ¹ by one seed alone")
    lines, numbers, sentences = iter(rows.splitlines()), 0, 0
    line = next(lines)
    for item in judged:
        verdict = item.verdict.value + "¹" * item.one_seed
        assert line.startswith(f"{verdict} ")
        shown, *told = line.removeprefix(verdict).split(maxsplit=1)
        assert shown == item.claim.id
        if told:
            paper, ours = told[0].split(" · ")
            assert paper == item.claim.paper
            assert (item.ours or "–").startswith(ours)
            numbers += 1
        below = []
        while (line := next(lines, "")).startswith(" "):
            below.append(line.strip())
        why = f"({item.why})" if item.why else ""
        said = " ".join(below).removesuffix(why).rstrip()
        assert why in " ".join(below)
        assert said in (item.claim.sentence, "" if told else item.claim.sentence)
        sentences += bool(said)
    assert numbers
    assert sentences


def test_json_has_what_programs_read(run: Run, recorded: Path) -> None:
    code, out, _ = run("--json", "--results", recorded)
    rows = json.loads(out)
    assert code == 0
    assert [row["id"] for row in rows] == list(all_claims())
    for row in rows:
        assert row.keys() >= {"id", "claim", "where", "paper", "ours", "seeds", "verdict", "figures"}
        assert row["verdict"] in list(Verdict)
        assert row["ours"] or row["verdict"] == "not measured"


def test_evidence_shows_every_record_and_the_other_reading(run: Run, recorded: Path) -> None:
    code, out, _ = run("addition.puma.lower", "--json", "--results", recorded)
    (row,) = json.loads(out)
    assert code == 0
    assert len(row["records"]) == 10
    assert {record["value"] for record in row["records"]} == {held["paper"] for held in row["figures"]}
    wanted = {"run", "seed", "policy", "stratum", "n", "value", "interval", "commit", "device", "checkpoint"}
    assert wanted <= row["records"][0].keys()
    assert {record["policy"] for record in row["beside"]} == {"max-logit"}
    assert row["parts"][-1]["of"] == "random masking, top1, chain>=28 − PUMA, top1, chain>=28"
    assert {part["seeds"] for part in row["parts"]} == {1}
    code, out, _ = run("addition.puma.lower", "--results", recorded)
    assert code == 0
    for word in ("chain>=28", "0.908", "addition-puma-s42", "c0ffee", "H200", "max-logit", "holds"):
        assert word in out


def test_a_card_is_readable_at_80_columns(run: Run, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a table that is continued are found by their numbers, and no label is repeated there."""
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("addition.puma.lower", "--results", recorded)
    assert out.splitlines()[1].startswith("claim ")
    tables = {
        part.splitlines()[0].rstrip(): [line.rstrip() for line in part.splitlines()] for part in out.split("\n\n")
    }
    continued = tables["records, continued"]
    assert continued[1].split()[0] == "#"
    assert "PUMA" not in "\n".join(continued)
    for name in ("parts", "records"):
        rows = [line for line in tables[name][3:] if line.lstrip()[0].isdigit()]
        assert len(rows) >= 5
        assert len(tables[name]) - 3 <= 4 * len(rows), f"a label of {name} takes more than four lines"


def test_the_first_words_of_ids_list_the_claims_under_them(run: Run, recorded: Path) -> None:
    code, out, _ = run("addition.puma", "countdown", "--results", recorded)
    assert code == 0
    wanted = [id for words in ("addition.puma.", "countdown.") for id in all_claims() if id.startswith(words)]
    head, rows = out.split("\n\n")
    assert head.startswith(f"{len(wanted)} claims: ")
    found = [line for line in rows.splitlines() if not line.startswith(" ")]
    assert [next(word for word in line.split() if "." in word) for line in found] == wanted
    _, out, _ = run("data.sudoku", "--results", recorded)
    assert out.startswith("1 claim: ")
    _, out, _ = run("countdown", "--json", "--results", recorded)
    assert not any("beside" in row for row in json.loads(out))
    _, out, _ = run("remedy.margin", "--results", recorded)  # of another source than the paper
    assert "remedy.margin.sudoku-random" in out
    assert "remedy.margin.countdown-random" in out
    _, out, _ = run("addition.papl.starved", "--json", "--results", recorded)  # an id, although there is one under it
    assert [row["id"] for row in json.loads(out)] == ["addition.papl.starved"]
    code, _, err = run("addition.pum", "--results", recorded)
    assert code == 2
    assert "did you mean " in err


def test_an_unknown_id_gets_close_ones(run: Run, recorded: Path) -> None:
    code, _, err = run("adition.puma.lowr", "--results", recorded)
    assert code == 2
    assert "did you mean " in err
    assert "addition.puma.lower" in err
    assert err.count(",") == 2  # three of them
    assert err.count("\n") == 1
    code, _, err = run("zzzzzz", "--results", recorded)
    assert (code, "`hardtail claims` lists them all" in err) == (2, True)


def _damage(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_text(change(path.read_text()))

    return damage


RUN = "addition-puma-s42"
EXPLAINED = as_json(diagnosis_of("addition", diagnosed_strata("addition"), 2700, checkpoint="last"))


@pytest.mark.parametrize(
    "damage",
    [
        _damage(f"{RUN}/evaluations.jsonl", lambda text: text[:-9]),
        _damage(
            f"{RUN}/evaluations.jsonl",
            lambda text: text.replace('"exact_match": 0', '"exact_match": "0').replace(', "n', '", "n'),
        ),
        _damage(f"{RUN}/evaluations.jsonl", lambda text: text.replace('"exact_match": 0', '"exact_match": 7')),
        _damage(f"{RUN}/evaluations.jsonl", lambda text: text.replace('"policy"', '"polity"')),
        _damage(f"{RUN}/evaluations.jsonl", lambda text: text.replace('"n": ', '"n": Infinity, "m": ')),
        _damage(f"{RUN}/diagnoses.jsonl", lambda text: json.dumps(EXPLAINED | {"strata": 3.5}) + "\n"),
        _damage(f"{RUN}/diagnoses.jsonl", lambda text: json.dumps(EXPLAINED | {"strata": None}) + "\n"),
        _damage(
            f"{RUN}/diagnoses.jsonl",
            lambda text: json.dumps(EXPLAINED | {"profile": 3}) + "\n",
        ),
        _damage("addition-random-s42/log.jsonl", lambda text: '{"step": "x", "natural": 1.0}\n'),
        _damage("index.jsonl", lambda text: text.replace('"seed": 42', '"seed": "x"')),
        _damage("index.jsonl", lambda text: text.replace('"arm"', '"harm"')),
        lambda folder: (folder / "index.jsonl").unlink(),
    ],
)
def test_damaged_results_are_one_sentence(run: Run, recorded: Path, damage: Callable[[Path], None]) -> None:
    damage(recorded)
    code, out, err = run("--results", recorded)
    assert code == 2
    assert not out
    assert err.startswith("hardtail: ")
    assert err.count("\n") == 1


def test_results_are_found_here_and_missing_ones_are_told(monkeypatch: pytest.MonkeyPatch, recorded: Path) -> None:
    monkeypatch.chdir(recorded.parent)
    assert default_results().resolve() == recorded
    (recorded / "index.jsonl").unlink()
    monkeypatch.setattr(store_module, "__file__", str(recorded / "a" / "b" / "c" / "store.py"))
    with pytest.raises(HardtailError, match=r"no recorded runs .*index\.jsonl"):
        default_results()


def test_the_ledger_needs_no_torch(recorded: Path) -> None:
    program = f"import sys; sys.argv = ['hardtail', 'claims', '--results', {str(recorded)!r}]\n"
    program += "from hardtail.cli import main\nmain()\nassert 'torch' not in sys.modules, 'torch was imported'"
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_an_id_is_looked_for_in_all_sources(run: Run, recorded: Path) -> None:
    own = source_named("papl").claims()[0].id
    code, out, _ = run(own, "--results", recorded)
    assert code == 0
    assert own in out
    code, _, err = run(own, "--source", "confidence-shortcut", "--results", recorded)
    assert code == 2
    assert f"there is no claim {own!r}" in err
    code, _, err = run(f"{own}x", "--results", recorded)
    assert code == 2
    assert f"did you mean {own}" in err


def test_a_commit_is_shortened_and_keeps_its_mark() -> None:
    assert _short("0123456789abcdef0123456789abcdef01234567+") == "0123456789ab+"
    assert _short("2256d92") == "2256d92"
    assert _short(None) is None


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("addition.puma.lower", "the weights that the paper used"),
        ("remedy.detect.maze-random", "the weights that ship, else best_probe"),
        ("papl.better.addition", "the weights that each recipe selects"),
    ],
)
def test_the_title_says_whose_weights_were_judged(run: Run, recorded: Path, name: str, weights: str) -> None:
    title = f"{name}; reading release, "
    assert " ".join(run(name, "--results", recorded)[1].split()).startswith(title + weights)
    assert run(name, "--checkpoint", "last", "--results", recorded)[1].startswith(f"{title}last weights")


def test_a_list_of_claims_is_not_called_the_papers_if_it_is_not(run: Run, recorded: Path) -> None:
    titles = [run(*given, "--markdown", "--results", recorded)[1].splitlines()[0] for given in ((), ("remedy.margin",))]
    assert titles[0] == "**The claims of the paper; reading release, the weights that the paper used**"
    assert titles[1].startswith("**The claims under remedy.margin; reading release, the weights that ship")
