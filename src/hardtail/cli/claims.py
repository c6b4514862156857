"""The ledger of the paper's claims."""

import json
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from hardtail.cli.common import app, open_console


@app.command
def claims(
    ids: Annotated[
        Positional[tuple[str, ...]],
        arg(metavar="ID", help="claims to show with their evidence [a table of all claims]"),
    ] = (),
    /,
    source: Annotated[
        str, arg(metavar="NAME", help="whose claims: a known source, or a .toml file of your own (docs/claims.md)")
    ] = "confidence-shortcut",
    reading: Annotated[
        Literal["release", "paper"], arg(help="runs that follow the authors' code, or the paper's text")
    ] = "release",
    checkpoint: Annotated[
        Literal["last", "best_probe"] | None, arg(help="weights behind all figures [those that the paper used]")
    ] = None,
    results: Annotated[Path | None, arg(help="folder of recorded runs [results]")] = None,
    markdown: Annotated[bool, arg(help="print Markdown tables")] = False,
    as_json: Annotated[bool, arg(name="json", help="print one JSON list")] = False,
) -> None:
    """The claims of a paper, each with our figure and a verdict computed from recorded runs.

    With an ID, show every record behind its verdict.
    """
    from hardtail.study.claims import Results, claim_named, judge, ledger
    from hardtail.study.store import Store, default_results, recorded

    whose = ledger.source_named(source)
    chosen = [claim_named(name, whose) for name in dict.fromkeys(ids)]
    held = Results(Store(recorded(results) if results else default_results()), reading, checkpoint)
    judged = judge(held, chosen or whose.claims())
    if as_json:
        rows = [ledger.as_json(item, held, evidence=bool(chosen)) for item in judged]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    tables = (
        [table for item in judged for table in ledger.evidence_tables(item, held)]
        if chosen
        else [ledger.ledger_table(judged, held, whose.title), ledger.counts_table(judged)]
    )
    if markdown:
        print("\n".join(table.markdown() for table in tables))
        return
    console = open_console(at_least=180)
    for table in tables:
        drawn = table.rich()
        for column in (drawn.columns[0], drawn.columns[-1]):  # ids and verdicts are read whole
            column.no_wrap = not chosen
        console.print(drawn)
