"""Recipes: the request of a figure as plain data, kept in collections and exported files.

A recipe names runs without their folders, which mean nothing on another machine; `portable` does the same with files
that options name. Knows no file format.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from core_models.settings import ConfigError, Section, read_value
from workbench.figures.registry import load, of_a_sentence
from workbench.figures.request import Request
from workbench.plotting.grammar import Font
from workbench.store.file_digests import digest_of
from workbench.store.runs import Run


class Recipe(Section):
    """A figure's name and its request, with runs by name, the baseline first.

    width and font: on paper, a width of "" for the figure's default. among: all selected runs if they differ from the
    drawn ones; they decide the styles. A portable recipe stores a file that an option names as {"file": its name,
    "sha256": a digest}.
    """

    drawing: str
    runs: tuple[str, ...] = ()
    among: tuple[str, ...] = ()
    test: str = "test"
    sentence: int = 0
    baseline: str | None = None
    options: dict[str, Any] = {}
    width: Literal["", "column", "page"] = ""
    font: Font = "sans"

    @property
    def files(self) -> dict[str, dict[str, str]]:
        """The files of a portable recipe, by option: name and digest."""
        return {option: value for option, value in self.options.items() if _is_name(value)}

    @property
    def key(self) -> str:
        """A digest of the recipe, the same in every session."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]


def recipe_of(name: str, request: Request, width: Literal["", "column", "page"] = "") -> Recipe:
    """The recipe of a request, with the options that differ from the defaults.

    Their values become JSON types, so that a recipe read back from a file is the same. Raises RunError for an unknown
    option.
    """
    return Recipe(
        drawing=name,
        runs=tuple(run.name for run in request.runs),
        among=tuple(run.name for run in request.palette_runs),
        test=request.test,
        sentence=request.sentence if of_a_sentence(name) else 0,
        baseline=request.baseline,
        options=json.loads(json.dumps(_differing(name, request), default=str)),
        width=width,
    )


def portable(recipe: Recipe) -> Recipe:
    """The recipe without paths: every file that an option names is stored as its name and digest."""
    options = {option: _named(value) for option, value in recipe.options.items()}
    return recipe.model_copy(update={"options": options})


def figure_command(name: str, request: Request, elsewhere: bool = False) -> str:
    """The command line that draws the same figure, with the options that differ from the defaults.

    elsewhere: for readers on another machine, with files by name alone. Raises RunError for an unknown option.
    """
    words = ["workbench", "figure", name]
    for run in request.runs:
        words += ["--run", path_of(run)]
    for run in request.palette_runs:
        words += ["--palette-runs", path_of(run)]
    words += ["--test", request.test] if request.test else []
    words += ["--sentence", str(request.sentence)] if of_a_sentence(name) else []
    words += ["--baseline", request.baseline] if request.baseline else []
    for option, value in _differing(name, request).items():
        if elsewhere and isinstance(file := _named(value), dict):
            value = file["file"]
        words += ["--option", f"{option}={_typed(value)}"]
    return shlex.join([*words, "--out", f"{name}.pdf"])


def paper_options(recipe: Recipe) -> str:
    """The options that a command line needs for the width and font of a recipe, behind a space; "" for defaults."""
    width = f" --width {recipe.width}" if recipe.width else ""
    return width + (f" --font {recipe.font}" if recipe.font != "sans" else "")


def _typed(value: Any) -> str:
    """A value as `--option` reads it: a text without quotes where YAML reads that text, else JSON."""
    if isinstance(value, str):
        with suppress(ConfigError):
            if read_value(value, "--option") == value:
                return value
    return json.dumps(value, ensure_ascii=False)


def path_of(run: Run) -> str:
    """`Run.argument`, relative to the current folder if the run is below it."""
    path = Path(run.argument)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _differing(name: str, request: Request) -> dict[str, Any]:
    """The options of a request that differ from the figure's defaults; all options for an unknown figure."""
    return load()[name].differing(request.options) if name in load() else dict(request.options)


def _named(value: Any) -> Any:
    """The name and digest of a file for its path; other values unchanged."""
    if not isinstance(value, str) or not (os.sep in value or Path(value).suffix) or not os.path.isfile(value):
        return value
    return {"file": Path(value).name, "sha256": digest_of(Path(value))}


def _is_name(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"file", "sha256"}:
        return False
    return all(isinstance(part, str) for part in value.values())
