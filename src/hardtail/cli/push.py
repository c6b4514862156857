"""Publishing on the Hugging Face Hub: push."""

from typing import Annotated

from tyro.conf import Positional

from hardtail.cli import common
from hardtail.cli.commands import app
from hardtail.cli.common import UnregisteredTask
from hardtail.cli.options import option


@app.command(imports=True)
def push(
    source: Annotated[
        Positional[str],
        option(
            "a run directory, a .safetensors file, zoo:NAME, or a data set or trace (.npz, .parquet)",
            "WHAT",
        ),
    ],
    to: Annotated[Positional[str], option("the repository, which is made if need be", "hf:USER/NAME")],
    /,
    task: UnregisteredTask = None,
    private: Annotated[bool, option("make a new repository private")] = False,
    licence: Annotated[str | None, option("the licence that the card names, such as apache-2.0", "NAME")] = None,
    message: Annotated[str | None, option("the commit's message [what was pushed]", "TEXT")] = None,
    dry_run: Annotated[bool, option("print the card and the files, and push nothing")] = False,
) -> None:
    """Publish a model, a data set or a trace on the Hugging Face Hub, with a card written from its records."""
    from hardtail.api.hub import packed, sent
    from hardtail.core.hub import CARD

    common.admit_task(task)
    with common.busy(f"checking {source}"):
        package = packed(source, to, licence)
    if dry_run:
        card = package.files[CARD]
        print(card.decode() if isinstance(card, bytes) else card)
        print("files:", ", ".join(sorted(package.files)))
        return
    with common.busy("pushing"):
        pinned = sent(package, to, private=private, message=message)
    print(f"a {package.what}, {len(package.files)} files, {package.size / 1e6:.1f} MB, is now")
    print(pinned)
