"""workbench contrastive-eval: how often runs find the right translation more probable than wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.shared import Device, app, bar, print_table, refuse
from workbench.cli.terminal import say
from workbench.evaluation.distributed import rank


@app.command()
def contrastive_eval(
    file: Annotated[
        Path | None, typer.Argument(help="Items: TSV or JSON lines (source, right, wrong, tags), or ContraPro's JSON")
    ] = None,
    run: Annotated[list[Path] | None, typer.Option(help="Run folders")] = None,
    tag: Annotated[
        str | None, typer.Option(help="Split the accuracy by this tag, such as distance, or by several: distance,order")
    ] = None,
    controlled: Annotated[
        str | None, typer.Option(help="Instead of a file: the pronouns of this controlled test set, such as test")
    ] = None,
    contexts: Annotated[
        str | None,
        typer.Option(help="A control, other sentences around the items: none, another (item's), words-backwards"),
    ] = None,
    device: Device = "cpu",
) -> None:
    """Score right and wrong translations; RUN/contrast keeps the result, which the page Contrast shows."""
    from analyses.contrastive import CONTEXTS, with_contexts
    from core_models.settings import nearest
    from workbench.store.runs import open_runs
    from workbench.views.contrastive import measure as contrastive
    from workbench.views.contrastive.items import controlled_items, read_items

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
        items, origin = controlled_items(opened[0], str(controlled)), f"the truth of {controlled}"
        name = f"controlled-{controlled}"
    if contexts is not None:
        if contexts not in CONTEXTS:
            refuse(f"--contexts {contexts}: {nearest(contexts, list(CONTEXTS))}")
        if not any(item.context or item.context_after for item in items):
            refuse(f"--contexts {contexts}: no item has sentences around it")
        if contexts == "another" and len(items) < 2:
            refuse("--contexts another: one item has no other")
        items, name = with_contexts(items, contexts), f"{name}+{contexts}"
        origin += f"; around the items {CONTEXTS[contexts]}"
    known = dict.fromkeys(own for item in items for own in item.tags)
    if tag is not None and (unknown := [one for one in tag.split(",") if one not in known]):
        refuse(f"--tag {tag}: no item has the tag {unknown[0]!r}; there is {', '.join(known) or 'none'}")
    for one in opened:
        with bar(f"scoring with {one.name}") as show:
            path = contrastive.measure(
                one, items, name, origin, device, step=lambda done, total: show(done, total, "")
            )  # fmt: skip
        say(str(path), err=True)
    print_table(contrastive.accuracy_table(contrastive.read_all(opened, name), tag))
