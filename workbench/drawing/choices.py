"""The drawing of choices that the controlled corpus knows the right answer to: pronouns and commitments by distance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.drawing import Request, drawing, short_names, styles
from workbench.true_choices import MAJORITY, choices_table

if TYPE_CHECKING:
    from workbench.figures.grammar import Figure

TITLES = {
    "pronoun": "pronouns: sentences back",
    "commitment": "commitments: words to what is forced",
}


@drawing("true-choices", options=())
def _choices(request: Request) -> Figure:
    from workbench.figures.choices import choices

    short = {**short_names(request.runs), MAJORITY: MAJORITY}
    table = choices_table(request.runs, request.test, "reach")
    caption = (
        f"What the controlled corpus knows of {request.test}: pronouns for the right gender, and first words that get "
        "what they force, of those that can be decided by counting words; 95 % Wilson intervals. Grey: the commonest "
        "pronoun throughout."
    )
    return choices(table.assign(system=table["system"].map(short)), "reach", TITLES, MAJORITY, caption, styles(request))
