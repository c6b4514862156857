"""The report's decodes and its file: what goes in comes out.

Shapes: N instances, T events.
"""

import base64
import gzip
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hardtail import cli
from hardtail.core.registry import TASKS
from hardtail.core.trace_files import load_trace
from hardtail.core.types import Trace
from hardtail.measuring.diagnosis.readiness import readiness
from hardtail.policies.named import policy_named
from hardtail.show.page.data import page_content
from hardtail.show.page.pack import PackedArrays
from hardtail.show.page.packed_stages import packed
from hardtail.show.page.page import SCRIPTS, page_of, write_page
from hardtail.show.stages import ready_events, stages
from hardtail.study.claims import Verdict
from hardtail.study.store import Store
from tests.report_toys import EVIL, TASK, addition_traces, markup_trace, results, saved

WEB = Path(cli.__file__).parents[1] / "show" / "page" / "web"
KINDS = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "i2": np.int16}


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return addition_traces()


@pytest.fixture(scope="module")
def content(traces: list[Trace]) -> tuple[dict[str, Any], bytes]:
    content, arrays = page_content(None, [], traces)
    return content, gzip.decompress(base64.b64decode(arrays))


def unpacked(place: dict[str, Any], raw: bytes) -> NDArray[Any]:
    return np.frombuffer(raw, KINDS[place["type"]], place["n"], place["at"])


# -- traces -----------------------------------------------------------------------------------------------------------


def test_a_page_holds_every_event_of_every_trace(content: tuple[dict[str, Any], bytes], traces: list[Trace]) -> None:
    (stage,), raw = content[0]["stages"], content[1]
    tokens_PL = unpacked(stage["tokens"], raw).reshape(-1, stage["length"])
    by_name = {decoder["name"]: decoder for decoder in stage["decoders"]}
    assert set(by_name) == {
        f"addition-{model} · {policy}" for model in ("random", "puma") for policy in ("top1", "lsb")
    }
    for trace in traces:
        decoder = by_name[f"{trace.about['model']} · {trace.about['policy']}"]
        row_N, end_N = (unpacked(decoder[name], raw) for name in ("row", "end"))
        at_N = np.flatnonzero(np.array(stage["strata"])[row_N] == trace.about["stratum"])
        np.testing.assert_array_equal(tokens_PL[row_N[at_N]], trace.instances.tokens_NL)
        np.testing.assert_array_equal(unpacked(decoder["exact"], raw)[at_N], trace.exact_N)
        event_NT = (end_N[at_N] - trace.cell_NT.shape[1])[:, None] + np.arange(trace.cell_NT.shape[1])
        for name, held in (("cell", trace.cell_NT), ("step", trace.step_NT), ("token", trace.token_NT)):
            np.testing.assert_array_equal(unpacked(decoder[name], raw)[event_NT], held)
        for name, share in (("prob", trace.prob_NT), ("goldProb", trace.gold_prob_NT)):
            np.testing.assert_allclose(unpacked(decoder[name], raw)[event_NT] / 65535, share, atol=1e-5)


def test_decoders_of_the_same_problems_share_them(traces: list[Trace]) -> None:
    (stage,) = stages(traces)
    assert len(stage.problems) == 2 * len(traces[0])
    for rows in stage.rows[1:]:
        np.testing.assert_array_equal(rows, stage.rows[0])


def test_models_of_one_name_are_told_apart(traces: list[Trace]) -> None:
    early, late = (replace(traces[0], about={**traces[0].about, "step": step, "seed": 1}) for step in (10, 20))
    (stage,) = stages([early, late])
    names = {decoder.model for decoder in stage.decoders}
    assert len(names) == 2
    assert any("step 10" in name for name in names)


def test_unready_commits_are_those_that_the_diagnosis_counts(traces: list[Trace]) -> None:
    for trace in traces:
        assert int((~ready_events(TASK, trace)).sum()) == readiness(TASK, trace).premature
    assert any(not ready_events(TASK, trace).all() for trace in traces)


def test_the_first_wrong_commit_is_known(content: tuple[dict[str, Any], bytes]) -> None:
    (stage,), raw = content[0]["stages"], content[1]
    role_PA = unpacked(stage["role"], raw).reshape(-1, stage["cells"])
    decoder = next(one for one in stage["decoders"] if one["name"] == "addition-puma · top1")
    wrong_N, row_N = (unpacked(decoder[name], raw) for name in ("firstWrong", "row"))
    failed_N = unpacked(decoder["exact"], raw) == 0
    assert failed_N.any()
    np.testing.assert_array_equal(wrong_N >= 0, failed_N)
    roles = {stage["roleNames"][role] for role in role_PA[row_N[failed_N], wrong_N[failed_N]]}
    assert roles <= {"g", "k"}  # the planted shortcut guesses there, and nowhere else


def test_a_page_tells_a_hundred_thousand_problems_apart(traces: list[Trace]) -> None:
    (stage,) = stages(traces[:1])
    pack = PackedArrays()
    far = replace(stage, rows=(stage.rows[0] + 100_000,))
    (decoder,) = packed(far, pack)["decoders"]
    raw = gzip.decompress(base64.b64decode(pack.text()))
    np.testing.assert_array_equal(unpacked(decoder["row"], raw), far.rows[0])


def test_bare_instances_are_shown_without_annotations(traces: list[Trace]) -> None:
    bare = replace(traces[0], instances=traces[0].instances.bare())
    content, _ = page_content(None, [], [bare])
    assert content["stages"][0]["roleNames"] == []
    assert content["stages"][0]["parentSlots"] is None


# -- the file ---------------------------------------------------------------------------------------------------------


def test_the_page_asks_nothing_of_the_network(tmp_path: Path, traces: list[Trace]) -> None:
    page = page_of(*page_content(Store(results(tmp_path)), [], traces))
    addresses = set(re.findall(r"\w+://[^\s\"'`)]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a language, never fetched
    assert not re.search(r"\s(?:src|href)=[\"']?(?!#)\w", page)
    assert "import(" not in page
    assert "@import" not in page
    assert "url(" not in page


def test_only_the_pages_own_script_may_run(traces: list[Trace]) -> None:
    page = page_of(*page_content(None, [], traces))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    program = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    assert policy is not None
    assert program is not None
    digest = base64.b64encode(hashlib.sha256(program[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy[1]
    assert policy[1].startswith("default-src 'none'")


def test_markup_in_data_stays_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS._known, "markup", "tests.report_toys:Markup")
    content, arrays = page_content(None, [], [markup_trace()])
    page = page_of(content, arrays)
    assert EVIL not in page
    assert page.count("<script") == page.count("</script>") == 3
    held = re.search(r'id="content">(.*?)</script>', page, re.DOTALL)
    assert held is not None
    assert json.loads(held[1])["stages"][0]["decoders"][0]["model"] == EVIL


def test_modules_import_what_others_before_them_export() -> None:
    assert {path.stem for path in WEB.glob("*.js")} == set(SCRIPTS)


def test_the_page_knows_every_verdict() -> None:
    """A claim with another one would leave the study's tab empty."""
    table = re.findall(r"^export const VERDICTS = {(.*?)^};", (WEB / "ledger.js").read_text(), re.DOTALL | re.MULTILINE)
    assert re.findall(r'^  "?([^":]+)"?: \[', table[0], re.MULTILINE) == list(Verdict)
    exported = {"palette": {"STEP_RAMP", "WHITE_UNTIL"}}

    def check(text: str, folder: str) -> None:
        imports = re.findall(rf'^import \{{([^}}]*)\}} from "{folder}/(\w+)\.js";$', text, re.MULTILINE)
        assert len(imports) == len(re.findall(r"^import\b", text, re.MULTILINE)), (
            "an import that the bundle cannot read"
        )
        for names, module in imports:
            assert {word.strip() for word in names.split(",")} <= exported[module]

    for name in SCRIPTS:
        text = (WEB / f"{name}.js").read_text()
        check(text, r"\.")
        exported[name] = set(re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", text, re.MULTILINE))
        if name == "scenes":  # the tasks' scenes are put in here
            for task in TASKS.builtin:
                scene = TASKS.load(task).scene()
                assert scene is not None
                check(scene.script, "hardtail")
                assert f'register("{task}", ' in scene.script


def test_a_page_has_the_scenes_of_its_own_tasks_only(traces: list[Trace]) -> None:
    page = page_of(*page_content(None, [], traces))
    assert 'register("addition", ' in page
    assert 'register("maze", ' not in page


def test_the_page_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("the old page of hardtail")

    def fail(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_page(path, {"stages": []}, "")
    assert path.read_text() == "the old page of hardtail"
    assert list(tmp_path.iterdir()) == [path]


def test_traces_are_shown_without_torch(tmp_path: Path, traces: list[Trace]) -> None:
    paths = saved(tmp_path, traces[:2])
    assert load_trace(Path(paths[0])).exact_N.shape == traces[0].exact_N.shape
    program = (
        "import sys; from pathlib import Path; from hardtail.show.page.data import page_content\n"
        "from hardtail.show.sources import load_traces\n"
        "page_content(None, [], load_traces([Path(name) for name in sys.argv[1:]]))\n"
        "assert 'torch' not in sys.modules, 'torch was imported'"
    )
    subprocess.run([sys.executable, "-c", program, *paths], check=True)


def test_a_policy_that_hides_cells_again_is_replayed(traces: list[Trace]) -> None:
    from hardtail.decoding.loop import decode
    from tests.planted import lookahead

    about = {**traces[0].about, "policy": "remdm"}
    instances = traces[2].instances.take(slice(0, 4))
    trace = decode(lookahead(TASK, 2), instances, policy_named("remdm", TASK.order_names), about=about)
    assert trace.cell_NT.shape[1] > TASK.answer_len
    content, arrays = page_content(None, [], [trace])
    raw = gzip.decompress(base64.b64decode(arrays))
    (decoder,) = content["stages"][0]["decoders"]
    assert unpacked(decoder["end"], raw)[-1] == int(trace.happened_NT.sum())
