"""The models that ship with the package."""

import json
from typing import Annotated

from tyro.conf import Positional

from hardtail.cli import common
from hardtail.cli.commands import app
from hardtail.cli.common import JsonList
from hardtail.cli.options import option


@app.command
def zoo(
    names: Annotated[
        Positional[tuple[str, ...]], option("models to describe in full [a table of all]", "[NAME ...]")
    ] = (),
    /,
    as_json: JsonList = False,
) -> None:
    """The trained models that ship with the package; evaluate one with `hardtail eval zoo:NAME`."""
    from msgspec import to_builtins

    from hardtail.core.pretrained import ZOO
    from hardtail.show.zoo import hard_strata, zoo_table, zoo_text
    from hardtail.zoo import find, models

    found = [find(name.removeprefix(ZOO)) for name in names] or models()
    if as_json:
        print(json.dumps(to_builtins(found), indent=1))
    elif names:
        print("\n\n".join(zoo_text(model, common.open_console().width) for model in found))
    else:
        common.show_tables([zoo_table(found)])
        print(hard_strata(found, common.open_console().width))
        print("`hardtail zoo NAME` says more; `hardtail eval zoo:NAME` measures it")
