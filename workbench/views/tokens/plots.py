"""Plots of the output word by word: probability, entropy, rank, and the predictions of each decoder layer."""

from __future__ import annotations

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis, cut_to, rank_axis, token_axis, token_text, token_texts
from workbench.plotting.columns import require_columns, said_of_each
from workbench.plotting.grammar import Axis, Figure, Heat, Labels, Line, Mark, Panel, SeriesStyle

_WORDS = ("system", "step", "token", "probability", "entropy", "rank", "best", "best_probability")
_LENS = ("system", "layer", "name", *_WORDS[1:])
_HOVER = ("token", "best", "best_probability")
_ROW_INCHES = 0.15
_MOST_BESIDE = 2  # systems; the cells of more would be too narrow for words
_ROOM = 54.0  # ems of the texts in the cells of one row at the width of a page


def token_probabilities(table: pd.DataFrame, styles: dict[str, SeriesStyle] | None = None, caption: str = "") -> Figure:
    """Panels of P(word), entropy (nats) and rank (1 is the most probable word, log axis), above each other.

    Systems with the same tokens share panels; others have a column each.
    """
    require_columns(table, _WORDS, "table")
    systems = list(dict.fromkeys(table["system"]))
    series_styles = theme.styles(systems, styles)
    rows = {name: table[table["system"] == name].sort_values("step") for name in systems}
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in systems:
        groups.setdefault(tuple(map(str, rows[name]["token"])), []).append(name)
    y_axes = {
        "probability": Axis("P(word)", range=(-0.03, 1.03)),
        "entropy": Axis("entropy (nats)", range=(0.0, max(1.0, 1.06 * float(table["entropy"].max())))),
        "rank": rank_axis(int(table["rank"].max())),
    }
    together = max(map(len, groups.values())) > 1
    panels = []
    for number, (measure, y) in enumerate(y_axes.items()):
        for tokens, names in groups.items():
            marks: list[Mark] = [
                Line(rows[name], "step", measure, name, series_styles[name], _HOVER, together and number == 0)
                for name in names
            ]
            title = ", ".join(names) if len(groups) > 1 and number == 0 else ""
            panels.append(Panel(tuple(marks), token_axis(list(tokens), first=1, side="target"), y, 0.75, title))
    return Figure(
        "token-probabilities",
        "Probability, entropy and rank of every word",
        tuple(panels),
        caption,
        _summary(table),
        "page" if len(groups) > 1 or max(map(len, groups)) > 18 else "column",
        shared_x=True,
        shared_y=len(groups) > 1,
        columns=len(groups),
    )


def _summary(table: pd.DataFrame) -> str:
    """Summary: whose tokens are not the most probable ones where they stand, and the least probable token of all."""
    others = (table["rank"] > 1).groupby(table["system"], sort=False).agg(["sum", "size"])
    found = ", ".join(f"{row['size'] - row['sum']} of {row['size']} of {name}" for name, row in others.iterrows())
    least = table.iloc[int(table["probability"].argmin())]
    everywhere = "All tokens are the most probable ones where they stand."
    return (
        f"{f'Tokens that are the most probable ones where they stand: {found}.' if others['sum'].any() else everywhere}"
        f" Least sure is {least['system']} of {token_text(str(least['token']))!r} (P = {least['probability']:.2g}, "
        f"rank {int(least['rank'])})."
    )


def layer_lens(table: pd.DataFrame, caption: str = "") -> Figure:
    """Most probable word after each decoder layer, shaded by the probability of the written word.

    Rows are words, columns are layers; one panel for each system. Words too long for a cell are cut.
    """
    require_columns(table, _LENS, "table")
    systems = list(dict.fromkeys(table["system"]))
    columns = min(len(systems), _MOST_BESIDE)
    room = _ROOM / (columns * int(table.groupby("system")["layer"].nunique().max()))
    table = table.assign(label=[cut_to(text, room) for text in token_texts(table["best"].astype(str))])
    panels = []
    for system in systems:
        rows = table[table["system"] == system].sort_values(["step", "layer"])
        words, layers = rows.drop_duplicates("step"), rows.drop_duplicates("layer").sort_values("layer")
        heat = Heat(
            rows,
            "layer",
            "step",
            value="probability",
            label="P(word)",
            hover=("best", "best_probability", "rank", "entropy"),
        )
        cell_labels = Labels(
            rows, "layer", "step", text="label", ground="probability", offset_points=0.0, font_points=6.0
        )
        x = category_axis([str(name) for name in layers["name"]], "layer")
        y = token_axis([str(token) for token in words["token"]], "word", reversed=True, first=1, side="target")
        height = max(0.7, _ROW_INCHES * len(words))
        panels.append(Panel((heat, cell_labels), x, y, height, system if len(systems) > 1 else ""))
    return Figure(
        "layer-lens",
        "What the decoder would say after each layer",
        tuple(panels),
        caption,
        said_of_each(table, _settled_words),
        "page",
        columns=columns,
    )


def _settled_words(system: str, rows: pd.DataFrame) -> str:
    words = rows["step"].nunique()
    counts = [(int((part["rank"] == 1).sum()), str(name)) for name, part in rows.groupby("name", sort=False)]
    half = next((name for count, name in counts if 2 * count >= words), None)
    last, end = counts[-1]
    if half in (None, end):
        count = "all" if last == words else last
        return f"{system}: {count} of its {words} tokens are the most probable ones after {end}."
    return (
        f"{system}: after {half} at least half of its {words} tokens are already the most probable ones, "
        f"{f'all {words}' if last == words else last} after {end}."
    )
