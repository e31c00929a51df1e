"""workbench runs import-translations: translations made elsewhere, beside the runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.shared import refuse, runs_app
from workbench.cli.terminal import say


@runs_app.command("import-translations")
def runs_import_translations(
    systems: Annotated[list[str], typer.Argument(help="Translations as SYSTEM=FILE, one per line, plain or .gz")],
    test: Annotated[str, typer.Option(help="Name of the test set")],
    source: Annotated[Path, typer.Option(help="File of source sentences, one per line")],
    reference: Annotated[
        list[Path] | None, typer.Option(help="File of references, one per line; may be repeated")
    ] = None,
    doc_ids: Annotated[Path | None, typer.Option(help="File of document ids, one per line")] = None,
    out: Annotated[Path, typer.Option(help="Folder to write a run for each system to")] = Path("runs/outside"),
) -> None:
    """Import translations that other systems made, as runs."""
    from workbench.store.external import import_translations, read_test_set

    assignments = [system.partition("=") for system in systems]
    for system, (name, sign, file) in zip(systems, assignments, strict=True):
        if not (name and sign and file):
            refuse(f"{system!r}: write SYSTEM=FILE, such as online-a=online-a.de")
    names = [name for name, _, _ in assignments]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        refuse(f"{twice[0]} is named twice; one file for each system")
    parsed_set = read_test_set(test, source, reference or [], doc_ids)
    for run in import_translations(out, parsed_set, source, {name: Path(file) for name, _, file in assignments}):
        say(f"{run.folder}: {len(parsed_set.sources)} sentences of {test}")
