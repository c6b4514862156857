"""The ledger of the paper's claims."""

import json
from typing import Annotated, Literal

from tyro.conf import Positional

from hardtail.cli.commands import app
from hardtail.cli.common import JsonList, RecordedIn, open_console, show_tables
from hardtail.cli.options import option
from hardtail.core.errors import HardtailError


@app.command(imports=True)
def claims(
    ids: Annotated[
        Positional[tuple[str, ...]],
        option(
            "claims to show with their evidence, or the first words of ids to list, e.g. addition or countdown.puma "
            "[a line for each]",
            "[ID ...]",
        ),
    ] = (),
    /,
    source: Annotated[
        str | None,
        option(
            "whose claims: a known source, or a .toml file of your own (docs/claims.md) [confidence-shortcut; an ID is "
            "looked for in all]",
            "NAME",
        ),
    ] = None,
    reading: Annotated[
        Literal["release", "paper"], option("runs that follow the authors' code, or the paper's text")
    ] = "release",
    checkpoint: Annotated[
        Literal["last", "best_probe"] | None, option("weights behind all figures [those that each claim is about]")
    ] = None,
    results: RecordedIn = None,
    markdown: Annotated[bool, option("print Markdown tables")] = False,
    as_json: JsonList = False,
) -> None:
    """The claims of a paper, each with our figure and a verdict computed from recorded runs.

    With an ID, show every record behind its verdict; with the first words of ids, list the claims under them.
    """
    from hardtail.show.claims import ledger_lines
    from hardtail.show.sources import recorded_results
    from hardtail.study.claims import Results, judge, ledger

    if markdown and as_json:
        raise HardtailError("--markdown and --json exclude each other; give one of them")
    whose = ledger.the_paper() if source is None else ledger.source_named(source)
    found = [ledger.claims_named(name, None if source is None else whose) for name in ids]
    chosen = list({claim.id: claim for claims in found for claim in claims}.values())
    explained = bool(ids) and all(claim.id in ids for claim in chosen)
    held = Results(recorded_results(results), reading, checkpoint)
    judged = judge(held, chosen or whose.claims())
    if as_json:
        rows = [ledger.as_json(item, held, evidence=explained) for item in judged]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    title = f"The claims under {', '.join(ids)}" if ids else f"The claims of {whose.title}"
    tables = (
        [table for item in judged for table in ledger.evidence_tables(item, held)]
        if explained
        else [ledger.ledger_table(judged, held, title), ledger.counts_table(judged)]
    )
    if markdown:
        print("\n".join(table.markdown() for table in tables))
        return
    if explained:
        show_tables(tables)
    else:
        print("\n".join(ledger_lines(judged, open_console().width, whole=bool(ids))))
