"""Writing of a figure to files: PDF, SVG, PNG, CSV, JSON, and a bundle of them with a TeX snippet.

Every file is written atomically and has its provenance in its metadata. Knows no measure and no run;
`Figure.provenance` has the origin of the numbers.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from core_models.files.atomic_files import write_atomic
from core_models.files.atomic_folders import atomic_replace_folder, others, refuse_foreign
from core_models.files.file_marks import digest, is_marked, mark, unmarked
from core_models.files.run_files import RESULT, read_json
from workbench.export import figure_json
from workbench.export.tex import remarks, tex_text
from workbench.plotting import theme
from workbench.plotting.fonts import MissingGlyphs, missing_glyphs
from workbench.plotting.grammar import Figure
from workbench.plotting.matplotlib_renderer import paper_settings, to_matplotlib
from workbench.store.csv_cells import csv_text

DRAWN = (".pdf", ".svg", ".png")
WRITTEN = (".csv", ".json")
_COMMAND = "figure"


def save(figure: Figure, path: str | Path, width: str | float | None = None, grey: bool = False) -> Path:
    """Write the figure in the format of the path's ending: .pdf, .svg, .png (300 dpi), .csv (table drawn) or .json.

    `width` is a name of `theme.PAPER_WIDTHS` or inches. Raises MissingGlyphs if no installed font draws a character,
    and ValueError for another ending.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending == ".csv":
        return write_atomic(path, csv_text(figure.table))
    if ending == ".json":
        specification = {**figure_json.to_spec(figure), "table_sha256": table_digest(figure), "versions": versions()}
        return write_atomic(path, json.dumps(specification, ensure_ascii=False, indent=1))
    if ending not in DRAWN:
        raise ValueError(f"{path.name}: a figure is written as {', '.join((*DRAWN, *WRITTEN))}; choose one")
    missing = missing_glyphs(figure)
    if missing:
        raise MissingGlyphs(missing)
    return _draw(figure, path, ending, width, grey)


def bundle(figure: Figure, folder: str | Path, width: str | float | None = None, grey: bool = False) -> list[Path]:
    """Write every format and a .tex snippet to a folder, which is created if missing, and return the paths.

    The files appear together, and other figures in the folder stay. Raises MissingGlyphs, and FolderError for a folder
    with anything but figures, before anything is written.
    """
    folder = Path(folder)
    missing = missing_glyphs(figure)
    if missing:
        raise MissingGlyphs(missing)
    with atomic_replace_folder(folder, _COMMAND, _foreign) as part:
        for file in folder.iterdir() if folder.is_dir() else ():
            shutil.copy2(file, part)
        paths = write_formats(figure, part, width, grey)
        mark(part, _COMMAND)
    return [folder / path.name for path in paths]


def check_folder(folder: Path) -> None:
    """Raise FolderError for a folder that `bundle` would refuse, before anything is drawn."""
    refuse_foreign(folder, _COMMAND, _foreign)


def write_formats(figure: Figure, folder: Path, width: str | float | None = None, grey: bool = False) -> list[Path]:
    """Write every format and a .tex snippet to an existing folder and return the paths."""
    paths = [save(figure, folder / f"{figure.name}{ending}", width, grey) for ending in (*DRAWN, *WRITTEN)]
    return [*paths, write_atomic(folder / f"{figure.name}.tex", tex_snippet(figure))]


def _foreign(folder: Path) -> str | None:
    """The first entry of a folder that is not of a figure, or None; earlier versions wrote a digest but no marker."""
    if is_marked(folder):
        return unmarked(folder, _COMMAND)
    tables = [path for path in folder.glob("*.csv") if path.is_file() and path.with_suffix(".json").is_file()]
    names = {path.stem for path in tables if _says_digest(path.with_suffix(".json"), digest(path))}
    ours = {f"{name}{ending}" for name in names for ending in (*DRAWN, *WRITTEN, ".tex")}
    return others(folder, ours.__contains__)


def _says_digest(path: Path, of_table: str) -> bool:
    try:
        return read_json(path, RESULT)["table_sha256"] == of_table
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


def tex_snippet(figure: Figure) -> str:
    """A figure environment that includes the PDF, with a draft of the caption."""
    star = "*" if figure.width == "page" else ""
    caption = tex_text(figure.caption or figure.title)
    source = (
        f"\\begin{{figure{star}}}[t]\n"
        f"  \\centering\n"
        f"  \\includegraphics[width=\\{'textwidth' if star else 'columnwidth'}]{{{figure.name}.pdf}}\n"
        f"  \\caption{{{caption}}}\n"
        f"  \\label{{fig:{figure.name}}}\n"
        f"\\end{{figure{star}}}\n"
    )
    return "".join(f"{line}\n" for line in remarks(source)) + source


def provenance(figure: Figure, width: str | float | None = None, grey: bool = False) -> dict[str, object]:
    """The metadata of every drawn file: specification, digest of the table, versions, paper settings, provenance."""
    drawn = {name: part for name, part in figure_json.to_spec(figure, tables=False).items() if name != "provenance"}
    return {
        "figure": drawn,
        "table_sha256": table_digest(figure),
        "versions": versions(),
        "paper": {"width": width, "grey": grey, "font": figure.font},
        **dict(figure.provenance),
    }


def table_digest(figure: Figure) -> str:
    """SHA-256 of the table exactly as drawn, as CSV."""
    return hashlib.sha256(figure.table.to_csv(index=False, lineterminator="\n").encode()).hexdigest()


def versions() -> dict[str, str]:
    """The versions of the packages that compute and draw."""
    return {name: _version(name) for name in ("nmt-workbench", "matplotlib", "numpy", "pandas", "sacrebleu")}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed as a package"


def _draw(figure: Figure, path: Path, ending: str, width: str | float | None, grey: bool) -> Path:
    made_from = json.dumps(provenance(figure, width, grey), ensure_ascii=True)
    creator = f"nmt-workbench {_version('nmt-workbench')}"
    metadata: dict[str, object]
    if ending == ".pdf":
        metadata = {"Title": figure.name, "Subject": figure.caption, "Keywords": made_from, "Creator": creator,
                    "CreationDate": None}  # fmt: skip
    elif ending == ".svg":
        metadata = {"Title": figure.name, "Description": figure.caption, "Keywords": [made_from], "Creator": creator,
                    "Date": None}  # fmt: skip
    else:
        metadata = {"Title": figure.name, "Description": figure.caption, "Comment": made_from, "Software": creator}
    canvas = to_matplotlib(figure, width, grey)
    dpi = theme.RESOLUTION_DPI if ending == ".png" else theme.RASTER_DPI
    drawn = io.BytesIO()  # in memory: Matplotlib hides file errors behind an error of its own
    with paper_settings(figure.font):
        canvas.savefig(drawn, format=ending[1:], dpi=dpi, metadata=metadata)
    return write_atomic(path, drawn.getvalue())
