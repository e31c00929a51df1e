"""Several figures for a paper in one folder or zip: every format of each, a TeX snippet, a manifest and a README.

Nothing is written unless all glyphs of all figures are available. Sizes are those of the venue; the caller
selects the figures.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from core_models.files.atomic_files import atomic_replace, write_atomic
from core_models.files.atomic_folders import atomic_replace_folder, others, refuse_foreign
from core_models.files.file_marks import is_marked, mark, unmarked
from core_models.files.run_files import RESULT, read_json
from core_models.resources import commit
from workbench.export import collection, files
from workbench.export.tex import document
from workbench.figures.from_spec import DrawnFigure
from workbench.figures.spec import portable
from workbench.plotting.fonts import MissingGlyphs, missing_glyphs
from workbench.plotting.grammar import Figure

# Names of `theme.PAPER_WIDTHS` for a column and for the page; EMNLP and NAACL use the style of ACL.
VENUES = {
    "ACL": {"column": "column", "page": "page"},
    "TACL": {"column": "column", "page": "page"},
    "AAAI": {"column": "aaai-column", "page": "aaai-page"},
    "IJCAI": {"column": "ijcai-column", "page": "ijcai-page"},
}
_MANIFEST, _README = "manifest.json", "README.txt"
_COMMAND = "export bundle"
_MARK = "bundle"  # in markers of folders: the command's first name


def width_at(venue: str, figure: Figure) -> str:
    """The name of a figure's paper width at a venue."""
    return VENUES[venue][figure.width]


def write_bundle(figures: Sequence[DrawnFigure], out: str | Path, venue: str = "ACL") -> list[Path]:
    """Write figures to a folder, which is created if missing, or to `out` if it ends in .zip; returns the paths.

    Figures of the same name get numbers. An earlier bundle in the folder is replaced. Raises MissingGlyphs, and
    FolderError for a folder with anything else, before anything is written.
    """
    out, figures = Path(out), _with_unique_names(figures)
    missing = sorted({character for item in figures for character in missing_glyphs(item.figure)})
    if missing:
        raise MissingGlyphs(missing)
    if out.suffix.lower() != ".zip":
        with atomic_replace_folder(out, _COMMAND, _foreign_entry) as unfinished_folder:
            paths = _write_files(figures, unfinished_folder, venue)
            mark(unfinished_folder, _MARK)
        return [out / path.name for path in paths]
    with tempfile.TemporaryDirectory() as folder:
        paths = _write_files(figures, Path(folder), venue)
        with atomic_replace(out) as unfinished, ZipFile(unfinished, "w", ZIP_DEFLATED) as archive:
            for path in paths:
                # A ZipInfo has a fixed date: the same figures give the same bytes.
                entry = ZipInfo(f"{out.stem}/{path.name}")
                entry.external_attr, entry.compress_type = 0o644 << 16, ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    return [out]


def check_folder(out: Path) -> None:
    """Raise FolderError for a folder that `write_bundle` would refuse, before anything is drawn."""
    if out.suffix.lower() != ".zip":
        refuse_foreign(out, _COMMAND, _foreign_entry)


def _with_unique_names(figures: Sequence[DrawnFigure]) -> list[DrawnFigure]:
    names: dict[str, int] = {}
    renamed = []
    for item in figures:
        name = item.figure.name
        names[name] = names.get(name, 0) + 1
        unique_name = name if names[name] == 1 else f"{name}-{names[name]}"
        renamed.append(replace(item, figure=replace(item.figure, name=unique_name)))
    return renamed


def _write_files(figures: Sequence[DrawnFigure], folder: Path, venue: str) -> list[Path]:
    paths_of_figures = [files.write_formats(item.figure, folder, width_at(venue, item.figure)) for item in figures]
    manifest = json.dumps(_manifest(figures, paths_of_figures, venue), ensure_ascii=False, indent=1)
    return [
        *(path for paths in paths_of_figures for path in paths),
        write_atomic(folder / _MANIFEST, manifest),
        write_atomic(folder / _README, _readme(figures, venue)),
    ]


def _foreign_entry(folder: Path) -> str | None:
    """The first entry of a folder that is not of a bundle, or None; earlier versions wrote a file list, no marker."""
    if is_marked(folder):
        return unmarked(folder, _MARK)
    bundle_files: set[str] = set()
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        entries = read_json(folder / _MANIFEST, RESULT)["figures"]
        bundle_files = {_MANIFEST, _README, *(name for entry in entries for name in entry["files"])}
    return others(folder, bundle_files.__contains__)


def _manifest(
    figures: Sequence[DrawnFigure], paths_of_figures: Sequence[Sequence[Path]], venue: str
) -> dict[str, object]:
    """The content of the bundle in the format of a collection, so that it can be drawn again."""
    extra = {"venue": venue, "versions": files.versions(), **({"commit": commit()} if commit() else {})}
    content = collection.content([portable(item.recipe) for item in figures], **extra)
    for entry, item, paths in zip(content["figures"], figures, paths_of_figures, strict=True):
        origin = {name: value for name, value in item.figure.provenance.items() if name not in ("recipe", "commit")}
        entry |= {
            "name": item.figure.name,
            "title": item.figure.title,
            "caption": item.figure.caption,
            "files": [path.name for path in paths],
            "table_sha256": files.table_digest(item.figure),
            **origin,
        }
    return content


def _readme(figures: Sequence[DrawnFigure], venue: str) -> str:
    titles = "\n".join(f"  {item.figure.name}: {item.figure.title}" for item in figures)
    snippets = "".join(files.tex_snippet(item.figure) for item in figures)
    tex_document = document(*(f"\\input{{{item.figure.name}}}" for item in figures), also=snippets)
    return (
        f"Figures of the NMT workbench, in the widths of {venue}.\n\n{titles}\n\n"
        "For each figure: .pdf (vector, fonts embedded), .svg, .png (300 dpi), .csv (the table exactly as drawn),\n"
        ".json (the figure as data) and .tex (a figure environment with a first caption, to be \\input).\n"
        "A document with all of them, for pdfLaTeX:\n\n"
        f"{indent(tex_document, '  ')}\n"
        f"{_MANIFEST} has the runs, options, versions and seeds of each.\n\n"
        "Redraw one of them, or all:\n"
        f"  workbench figure redraw {figures[0].figure.name if figures else 'NAME'}.pdf --runs RUNS\n"
        f"  workbench export bundle OUT --collection {_MANIFEST} --venue {venue} --runs RUNS\n"
    )
