"""Several figures for a paper in one folder or zip: every format of each, a TeX snippet, a manifest and a README.

Nothing is written before all figures are drawn and all glyphs are available. Sizes are those of the venue; the caller
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
from workbench.export import collection, files
from workbench.export.tex import document
from workbench.figures.from_spec import Drawn
from workbench.figures.spec import portable
from workbench.plotting.fonts import MissingGlyphs, missing_glyphs
from workbench.plotting.grammar import Figure
from workbench.store.provenance import commit

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


def write_bundle(drawn: Sequence[Drawn], out: str | Path, venue: str = "ACL") -> list[Path]:
    """Write figures to a folder, which is created if missing, or to `out` if it ends in .zip; returns the paths.

    Figures of the same name get numbers. An earlier bundle in the folder is replaced. Raises MissingGlyphs, and
    FolderError for a folder with anything else, before anything is written.
    """
    out, drawn = Path(out), _with_unique_names(drawn)
    missing = sorted({character for drawn_figure in drawn for character in missing_glyphs(drawn_figure.figure)})
    if missing:
        raise MissingGlyphs(missing)
    if out.suffix.lower() != ".zip":
        with atomic_replace_folder(out, _COMMAND, _foreign) as part:
            written = _into(drawn, part, venue)
            mark(part, _MARK)
        return [out / path.name for path in written]
    with tempfile.TemporaryDirectory() as folder:
        inside = _into(drawn, Path(folder), venue)
        with atomic_replace(out) as unfinished, ZipFile(unfinished, "w", ZIP_DEFLATED) as archive:
            for path in inside:
                # A ZipInfo has a fixed date: the same figures give the same bytes.
                entry = ZipInfo(f"{out.stem}/{path.name}")
                entry.external_attr, entry.compress_type = 0o644 << 16, ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    return [out]


def check_folder(out: Path) -> None:
    """Raise FolderError for a folder that `write_bundle` would refuse, before anything is drawn."""
    if out.suffix.lower() != ".zip":
        refuse_foreign(out, _COMMAND, _foreign)


def _with_unique_names(drawn: Sequence[Drawn]) -> list[Drawn]:
    names: dict[str, int] = {}
    renamed = []
    for drawn_figure in drawn:
        name = drawn_figure.figure.name
        names[name] = names.get(name, 0) + 1
        own_name = name if names[name] == 1 else f"{name}-{names[name]}"
        renamed.append(replace(drawn_figure, figure=replace(drawn_figure.figure, name=own_name)))
    return renamed


def _into(drawn: Sequence[Drawn], folder: Path, venue: str) -> list[Path]:
    written = [
        files.write_formats(drawn_figure.figure, folder, width_at(venue, drawn_figure.figure)) for drawn_figure in drawn
    ]
    manifest = json.dumps(_manifest(drawn, written, venue), ensure_ascii=False, indent=1)
    return [
        *(path for paths in written for path in paths),
        write_atomic(folder / _MANIFEST, manifest),
        write_atomic(folder / _README, _readme(drawn, venue)),
    ]


def _foreign(folder: Path) -> str | None:
    """The first entry of a folder that is not of a bundle, or None; earlier versions wrote a file list, no marker."""
    if is_marked(folder):
        return unmarked(folder, _MARK)
    listed: set[str] = set()
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        figures = read_json(folder / _MANIFEST, RESULT)["figures"]
        listed = {_MANIFEST, _README, *(name for figure in figures for name in figure["files"])}
    return others(folder, listed.__contains__)


def _manifest(drawn: Sequence[Drawn], written: Sequence[Sequence[Path]], venue: str) -> dict[str, object]:
    """The content of the bundle in the format of a collection, so that it can be drawn again."""
    extra = {"venue": venue, "versions": files.versions(), **({"commit": commit()} if commit() else {})}
    content = collection.content([portable(drawn_figure.recipe) for drawn_figure in drawn], **extra)
    for entry, drawn_figure, paths in zip(content["figures"], drawn, written, strict=True):
        origin = {
            name: value for name, value in drawn_figure.figure.provenance.items() if name not in ("recipe", "commit")
        }
        entry |= {
            "name": drawn_figure.figure.name,
            "title": drawn_figure.figure.title,
            "caption": drawn_figure.figure.caption,
            "files": [path.name for path in paths],
            "table_sha256": files.table_digest(drawn_figure.figure),
            **origin,
        }
    return content


def _readme(drawn: Sequence[Drawn], venue: str) -> str:
    listed = "\n".join(f"  {drawn_figure.figure.name}: {drawn_figure.figure.title}" for drawn_figure in drawn)
    snippets = "".join(files.tex_snippet(drawn_figure.figure) for drawn_figure in drawn)
    setting = document(*(f"\\input{{{drawn_figure.figure.name}}}" for drawn_figure in drawn), also=snippets)
    return (
        f"Figures of the NMT workbench, in the widths of {venue}.\n\n{listed}\n\n"
        "Of each figure: .pdf (vector, fonts embedded), .svg, .png (300 dpi), .csv (the table exactly as drawn),\n"
        ".json (the figure as data) and .tex (a figure environment with a first caption, to be \\input).\n"
        "A document in which all of them are set as they are, by pdfLaTeX:\n\n"
        f"{indent(setting, '  ')}\n"
        f"{_MANIFEST} says from which runs, options, versions and seeds each was made.\n\n"
        "Draw one again, or all of them:\n"
        f"  workbench figure redraw {drawn[0].figure.name if drawn else 'NAME'}.pdf --runs RUNS\n"
        f"  workbench export bundle OUT --collection {_MANIFEST} --venue {venue} --runs RUNS\n"
    )
