"""workbench contrastive-eval: how often runs find the right translation more probable than wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.shared import Device, app, bar, comma_list, print_table, refuse
from workbench.cli.terminal import say
from workbench.evaluation.distributed import rank


@app.command()
def contrastive_eval(
    file: Annotated[
        Path | None,
        typer.Argument(help="File of items: TSV or JSON lines (source, right, wrong, tags), or ContraPro's JSON"),
    ] = None,
    run: Annotated[list[Path] | None, typer.Option(help="Run folder; may be repeated")] = None,
    tag: Annotated[
        str | None, typer.Option(help="Tags to split the accuracy by, comma-separated, e.g. distance,order")
    ] = None,
    controlled: Annotated[
        str | None, typer.Option(help="Controlled test set whose pronouns are the items, instead of a file, e.g. test")
    ] = None,
    contexts: Annotated[
        str | None,
        typer.Option(help="Control context in place of the items' own: none, other-item, or reversed (word order)"),
    ] = None,
    device: Device = "cpu",
) -> None:
    """Score right and wrong translations by forced decoding; the page Contrastive evaluation shows the result."""
    from analyses.contrastive import CONTEXTS, with_contexts
    from core_models.settings import nearest
    from workbench.store.runs import open_runs
    from workbench.views.contrastive import measure as contrastive
    from workbench.views.contrastive.items import read_items

    if rank() != 0:
        return  # one process does it all
    if (file is None) == (controlled is None):
        refuse("give either a FILE of items or --controlled TEST")
    if not run:
        refuse("name at least one run: --run RUN")
    opened = open_runs(run)
    if file is not None:
        items, origin = read_items(file), file.name
        name = file.name.removesuffix(".gz").rsplit(".", 1)[0]
    else:
        items, name, origin = contrastive.controlled(opened[0], str(controlled))
    if contexts is not None:
        if contexts not in contrastive.CONTROLS:
            refuse(f"--contexts {contexts}: {nearest(contexts, list(contrastive.CONTROLS))}")
        if not any(item.context or item.context_after for item in items):
            refuse(f"--contexts {contexts}: no item has sentences around it")
        if contexts == "other-item" and len(items) < 2:
            refuse("--contexts other-item: one item has no other")
        stored = contrastive.CONTROLS[contexts]
        items, name = with_contexts(items, stored), f"{name}+{stored}"
        origin += f"; around the items {CONTEXTS[stored]}"
    known = dict.fromkeys(item_tag for item in items for item_tag in item.tags)
    tag = tag and ",".join(comma_list(tag))
    if tag is not None and (unknown := [requested for requested in tag.split(",") if requested not in known]):
        refuse(f"--tag {tag}: no item has the tag {unknown[0]!r}; there is {', '.join(known) or 'none'}")
    for opened_run in opened:
        with bar(f"scoring with {opened_run.name}") as show:
            path = contrastive.score_items(opened_run, items, name, origin, device, step=show)
        say(str(path), err=True)
    print_table(contrastive.accuracy_table(contrastive.read_all(opened, name), tag))
