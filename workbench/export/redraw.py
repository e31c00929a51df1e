"""Redrawing of an exported figure from the metadata of a PDF, SVG, PNG or JSON file, and changes since then.

Knows the metadata that `files.save` writes. A file may come from anybody: its content is checked.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core_models.files.file_marks import mended
from core_models.files.run_files import RESULT, parse_json, read_json
from core_models.settings import ConfigError, Section, parse
from workbench.export.files import table_digest, versions
from workbench.figures import from_spec as recipes
from workbench.figures import spec
from workbench.figures.from_spec import DrawnFigure
from workbench.figures.provenance import digests_of
from workbench.figures.spec import Recipe
from workbench.plotting.grammar import Font
from workbench.store.provenance import digests
from workbench.store.runs import RunError

_NOTHING = "carries nothing that it could be drawn again from; only figures that this workbench wrote of runs do"


class Paper(Section):
    """Paper settings of a file; width is a name of `theme.PAPER_WIDTHS` or inches."""

    width: str | float | None = None
    grey: bool = False
    font: Font = "sans"


class Made(Section):
    """The provenance in an exported file."""

    recipe: Recipe
    table_sha256: str
    digests: dict[str, dict[str, str]] = {}
    versions: dict[str, str] = {}
    paper: Paper = Paper()


UNEXPLAINED = (
    "runs and versions are as they were, so the way it is drawn changed, or another processor or number of threads "
    "computes other last digits"
)


@dataclass(frozen=True)
class Again:
    """A redrawn figure; `changes` lists differences and is empty if the table is the same."""

    drawn: DrawnFigure
    made: Made
    same: bool
    changes: tuple[str, ...]

    @property
    def message(self) -> str:
        """The result in one sentence."""
        if self.same:
            return "the table drawn is the same as then"
        because = "; ".join(self.changes) or UNEXPLAINED
        return f"the table drawn has changed: {because}"


def draw_again(path: str | Path, root: str | Path, files: Mapping[str, object] | None = None) -> Again:
    """Draw the figure of an exported file again, with runs searched below `root`. Raises RunError.

    files: the path of each file that the figure was drawn with, by option.
    """
    provenance = read_made(path)
    recipe = spec.portable(provenance.recipe)  # paths in the file are of another machine
    recipes.check_files([recipe], files or {})
    models = {name: parts.get("model", "") for name, parts in provenance.digests.items()}
    try:
        drawn = recipes.draw(recipe, root, models, files)
    except RunError as error:
        request = recipes.request_of(recipe, root, models, files)
        made_by = {run: models.get(run.name, "") for run in request.runs}
        other = [run for run, model in made_by.items() if model and digests(run, "").get("model") != model]
        if not other:
            raise
        raise RunError(
            f"{error}; {other[0].name} ({other[0].folder}) has another model than the figure was drawn of: is the "
            "right run in another runs folder (--runs)?"
        ) from None
    same = table_digest(drawn.figure) == provenance.table_sha256
    return Again(drawn, provenance, same, () if same else tuple(_changes(provenance, drawn)))


def read_made(path: str | Path) -> Made:
    """Read the provenance in a file; raises RunError if it is missing or invalid."""
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise RunError(f"{path}: a figure is drawn again from {', '.join(_READERS)}, not from {path.suffix or 'this'}")
    text = reader(mended(path))
    try:
        content = parse_json(text or "null")
    except ValueError:
        content = None
    if not isinstance(content, Mapping) or "recipe" not in content:
        raise RunError(f"{path}: {_NOTHING}")
    try:
        return parse(Made, {name: value for name, value in content.items() if name in Made.model_fields}, str(path))
    except ConfigError as error:
        raise RunError(str(error)) from None


def _changes(made: Made, drawn: DrawnFigure) -> list[str]:
    """Differences in runs, files and versions."""
    changes = []
    for run in drawn.request.runs:
        now = digests_of(run, drawn.recipe.drawing, drawn.request)
        recorded = made.digests.get(run.name, {})
        other = [part for part in recorded.keys() | now.keys() if recorded.get(part) != now.get(part)]
        changes += [f"{run.name} ({run.folder}) has another {part}" for part in sorted(other)]
    files = spec.portable(spec.recipe_of(drawn.recipe.drawing, drawn.request)).files
    changes += [
        f"the file of {option} is another one"
        for option, recorded in drawn.recipe.files.items()
        if files[option]["sha256"] != recorded["sha256"]
    ]
    newer = versions()
    return changes + [
        f"{name} was {recorded} and is {newer[name]}"
        for name, recorded in made.versions.items()
        if name in newer and newer[name] != recorded
    ]


def _from_pdf(path: Path) -> str | None:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        described = PdfReader(path).metadata
        return None if described is None else described.keywords
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RunError(f"{path}: not readable as a PDF") from None


def _from_svg(path: Path) -> str | None:
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise RunError(f"{path}: not readable as an SVG ({error})") from None
    subjects = root.iterfind(".//{http://purl.org/dc/elements/1.1/}subject//*")
    return next((element.text for element in subjects if (element.text or "").lstrip().startswith("{")), None)


def _from_png(path: Path) -> str | None:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path, formats=["PNG"]) as image:
            return image.info.get("Comment")
    except (UnidentifiedImageError, Image.DecompressionBombError, SyntaxError, ValueError):
        raise RunError(f"{path}: not readable as a PNG") from None


def _from_json(path: Path) -> str | None:
    """The metadata of a JSON file, which has `provenance` and three more keys at the top level."""
    try:
        content: Any = read_json(path, RESULT)
    except ValueError:
        raise RunError(f"{path}: not readable as JSON") from None
    if not isinstance(content, dict) or not isinstance(content.get("provenance"), dict):
        return None
    top_level = {name: content[name] for name in ("table_sha256", "versions") if name in content}
    paper = {"font": content["font"]} if "font" in content else {}
    return json.dumps({**content["provenance"], **top_level, "paper": paper})


_READERS: dict[str, Callable[[Path], str | None]] = {
    ".pdf": _from_pdf,
    ".svg": _from_svg,
    ".png": _from_png,
    ".json": _from_json,
}
