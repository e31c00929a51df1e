"""workbench runs import-translations: translations made elsewhere, beside the runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.shared import refuse, runs_app
from workbench.cli.terminal import say


@runs_app.command("import-translations")
def runs_import_translations(
    systems: Annotated[list[str], typer.Argument(help="SYSTEM=FILE, a translation a line, plain or .gz")],
    test: Annotated[str, typer.Option(help="Name of the test set")],
    source: Annotated[Path, typer.Option(help="Its sources, a sentence a line")],
    reference: Annotated[list[Path] | None, typer.Option(help="Its references; repeat for several")] = None,
    docids: Annotated[Path | None, typer.Option(help="The document of each sentence, an id a line")] = None,
    out: Annotated[Path, typer.Option(help="Folder that gets a run for each system")] = Path("runs/outside"),
) -> None:
    """Bring in translations that were made elsewhere, so that they stand beside the runs."""
    from workbench.store.external import bring_in, read_test_set

    named = [system.partition("=") for system in systems]
    for system, (name, sign, file) in zip(systems, named, strict=True):
        if not (name and sign and file):
            refuse(f"{system!r}: write SYSTEM=FILE, such as online-a=online-a.de")
    names = [name for name, _, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        refuse(f"{twice[0]} is named twice; one file for each system")
    wanted = read_test_set(test, source, reference or [], docids)
    for run in bring_in(out, wanted, source, {name: Path(file) for name, _, file in named}):
        say(f"{run.folder}: {len(wanted.sources)} sentences of {test}")
