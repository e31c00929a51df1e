"""Sections of the page Figure collection: previews on paper, order, and downloads.

Previews and files are made by `workbench.export`, which also stores the collection.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from workbench.app.components import figure_view
from workbench.app.components.empty_states import empty_state
from workbench.app.frame import Frame, errors_as_messages, escape_markdown
from workbench.export import collection
from workbench.export.bundle import VENUES, width_at, write_bundle
from workbench.export.files import provenance
from workbench.export.preview import View, previews
from workbench.export.report import report, runs_of
from workbench.figures.from_spec import DrawnFigure, on_paper, request_of
from workbench.figures.registry import of_a_sentence
from workbench.figures.spec import Recipe
from workbench.plotting import theme
from workbench.plotting.fonts import FONT_NAMES, MissingGlyphs, missing_glyphs, substitution_note
from workbench.plotting.grammar import Figure
from workbench.store import read_only
from workbench.store.runs import Run

VIEW_CAPTIONS = {"paper": "On paper", "grey": "Printed in grey", "deuteranopia": "Without green (deuteranopia)"}


def show(frame: Frame) -> None:
    """Figures of the collection; an empty collection shows how to add figures."""
    path = collection.file_of(frame.root)
    recipes = collection.read(path)
    if not recipes:
        empty_state('The figure collection is empty. "Add to collection" stands below every figure.')
        return
    venue = st.segmented_control(
        "Widths of", list(VENUES), default="ACL", required=True, key="venue", bind="query-params"
    )
    if read_only.active():
        st.caption(read_only.WHY)
    toolbar = st.container(horizontal=True, vertical_alignment="center", gap="small")
    entries = [_show_entry(path, recipe, index, len(recipes), venue, frame) for index, recipe in enumerate(recipes)]
    with toolbar:
        _downloads([entry for entry in entries if entry is not None], None in entries, venue, frame)
        with st.popover("Command"):
            command = ["workbench", "export", "bundle", "figures.zip", "--runs", str(frame.root), "--venue", venue]
            st.code(shlex.join(command), language="bash", wrap_lines=True)
        st.button("Clear collection", on_click=_apply_change, args=(collection.clear, path), icon=":material/delete:",
                  disabled=read_only.active())  # fmt: skip


def _show_entry(path: Path, recipe: Recipe, index: int, count: int, venue: str, frame: Frame) -> DrawnFigure | None:
    """Show one figure of the collection; returns None if it cannot be drawn."""
    drawn = None
    with st.container(border=True):
        heading = st.container(gap="xsmall")
        with errors_as_messages():
            drawn = _draw(recipe, frame.root)
        heading.markdown(f"**{index + 1}. {escape_markdown(drawn.figure.title if drawn else recipe.drawing)}**")
        heading.caption(escape_markdown(_recipe_text(recipe)))
        with heading.container(horizontal=True, vertical_alignment="center", gap="small"):
            _buttons(path, recipe, index, count, drawn)
        if drawn is not None:
            missing = missing_glyphs(drawn.figure)
            if missing:
                st.warning(escape_markdown(str(MissingGlyphs(missing))))
            if note := substitution_note(drawn.figure):
                st.caption(escape_markdown(note))
            _previews(drawn.figure, width_at(venue, drawn.figure))
    return drawn


def _draw(recipe: Recipe, root: Path) -> DrawnFigure:
    request = request_of(recipe, root)
    return DrawnFigure(recipe, request, on_paper(recipe, figure_view.drawn(recipe.drawing, request)))


def _recipe_text(recipe: Recipe) -> str:
    parts = [recipe.drawing, ", ".join(recipe.runs), f"test set {recipe.test}"]
    parts += [f"sentence {recipe.sentence}"] if of_a_sentence(recipe.drawing) else []
    parts += [f"baseline {recipe.baseline}"] if recipe.baseline else []
    values_of = {name: value if isinstance(value, list) else [value] for name, value in recipe.options.items()}
    parts += [f"{name}: {', '.join(map(str, values))}" for name, values in values_of.items()]
    return " · ".join(part for part in parts if part)


def _buttons(path: Path, recipe: Recipe, index: int, count: int, drawn: DrawnFigure | None) -> None:
    key = recipe.key
    if drawn is not None:
        for field, label, names in (
            ("width", "Width on paper", figure_view.WIDTHS),
            ("font", "Font on paper", FONT_NAMES),
        ):
            st.segmented_control(
                label,
                list(names),
                format_func=names.__getitem__,
                default=getattr(drawn.figure, field),
                required=True,
                key=f"{field}-{key}",
                label_visibility="collapsed",
                disabled=read_only.active(),
                on_change=_set_on_paper,
                args=(path, recipe, field, f"{field}-{key}"),
            )
    steps: tuple[tuple[str, str, int, bool], ...] = (
        ("Up", "arrow_upward", -1, index == 0),
        ("Down", "arrow_downward", 1, index == count - 1),
    )
    for label, icon, step, at_end in steps:
        st.button(
            label,
            key=f"{label}-{key}",
            on_click=_apply_change,
            args=(collection.move, path, recipe, step),
            disabled=at_end or read_only.active(),
            icon=f":material/{icon}:",
        )
    st.button("Remove", key=f"remove-{key}", on_click=_apply_change, args=(collection.remove, path, recipe),
              icon=":material/close:", disabled=read_only.active())  # fmt: skip
    if drawn is not None:
        with st.popover("Command"):
            st.code(drawn.command, language="bash", wrap_lines=True)


def _set_on_paper(path: Path, recipe: Recipe, field: str, key: str) -> None:
    _apply_change(collection.replace, path, recipe, recipe.model_copy(update={field: st.session_state[key]}))


def _apply_change(change: Callable[..., None], path: Path, *arguments: object) -> None:
    with errors_as_messages():
        change(path, *arguments)


def _previews(figure: Figure, width: str) -> None:
    origin = json.dumps(provenance(figure), sort_keys=True, default=str)
    pictures = _pictures(hashlib.sha256(origin.encode()).hexdigest(), width, figure)
    # Three figures of a page's width would be too small side by side.
    columns = st.columns(len(pictures)) if figure.width == "column" else [st] * len(pictures)
    for column, (view, picture) in zip(columns, pictures.items(), strict=True):
        size = f", {theme.PAPER_WIDTHS[width]:g} in wide" if view == "paper" else ""
        column.image(picture, caption=VIEW_CAPTIONS[view] + size)


@st.cache_data(max_entries=64, show_spinner="Drawing the previews")
def _pictures(digest: str, width: str, _figure: Figure) -> dict[View, bytes]:
    return previews(_figure, width)


def _downloads(figures: list[DrawnFigure], some_fail: bool, venue: str, frame: Frame) -> None:
    unprintable = any(missing_glyphs(item.figure) for item in figures)
    st.download_button(
        "Download bundle",
        lambda: _bundle(figures, venue),
        "figures.zip",
        "application/zip",
        on_click="ignore",
        type="primary",
        icon=":material/folder_zip:",
        disabled=some_fail or unprintable or not figures,
        help="First repair or remove the figures that cannot be drawn."
        if some_fail or unprintable
        else "One zip: PDF, SVG, PNG, CSV, JSON and TeX of every figure, and a manifest",
    )
    st.download_button(
        "Download report",
        lambda: report("NMT workbench report", *report_scope(figures, frame), figures).encode(),
        "report.html",
        "text/html",
        on_click="ignore",
        icon=":material/description:",
        disabled=not figures,
        help="One HTML file with the runs and scores of the sidebar and these figures; needs no network",
    )


def report_scope(figures: Sequence[DrawnFigure], frame: Frame) -> tuple[Sequence[Run], str]:
    """Runs and test set of the report: of the sidebar or, if no chosen run has translated it, of the figures."""
    if frame.tested:
        return frame.tested, frame.view.test
    return runs_of(figures), next((item.request.test for item in figures if item.request.runs), frame.view.test)


def _bundle(figures: list[DrawnFigure], venue: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        (path,) = write_bundle(figures, Path(folder) / "figures.zip", venue)
        return path.read_bytes()
