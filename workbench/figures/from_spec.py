"""Redrawing of figures from recipes: runs are found by name below a folder, files by digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core_models.config import CONFIG, split_reference
from workbench.figures.drawing import draw as draw_figure
from workbench.figures.request import Request
from workbench.figures.spec import Recipe, figure_command, paper_options
from workbench.store import exhibits
from workbench.store.file_digests import digest_of
from workbench.store.provenance import digests
from workbench.store.runs import Run, RunError, list_runs, open_run

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


@dataclass(frozen=True)
class DrawnFigure:
    """A recipe, its request on this machine, and the figure."""

    recipe: Recipe
    request: Request
    figure: Figure

    @property
    def command(self) -> str:
        """The command line that draws the figure."""
        return figure_command(self.recipe.drawing, self.request) + paper_options(self.recipe)


def request_of(
    recipe: Recipe, root: str | Path, models: Mapping[str, str] | None = None, files: Mapping[str, object] | None = None
) -> Request:
    """The request of a recipe, with runs searched below `root`; raises RunError for a missing one.

    models: digests of the runs' models, to choose between runs of the same name. files: paths of files of which the
    recipe has only the name, by option; annotations below `root` are found without.
    """
    runs = tuple(_find(name, Path(root), (models or {}).get(name)) for name in recipe.runs)
    file_options = {option: _file_path(option, recipe, Path(root), files or {}) for option in recipe.files}
    palette_runs = tuple(_palette_run(name, Path(root), runs) for name in recipe.among)
    return Request(
        runs, recipe.test, recipe.sentence, recipe.baseline, {**recipe.options, **file_options}, palette_runs
    )


def check_files(recipes: Sequence[Recipe], files: Mapping[str, object]) -> None:
    """Raise RunError for a file that none of the recipes needs."""
    known = sorted({option for recipe in recipes for option in recipe.files})
    unknown = [option for option in files if option not in known]
    if unknown:
        hint = f"there is {', '.join(known)}" if known else "no file is named in it"
        raise RunError(f"--file {unknown[0]}: what was drawn once takes files alone, by option; {hint}")


def draw(
    recipe: Recipe, root: str | Path, models: Mapping[str, str] | None = None, files: Mapping[str, object] | None = None
) -> DrawnFigure:
    """Draw the figure of a recipe (see `request_of`). Raises RunError."""
    request = request_of(recipe, root, models, files)
    return DrawnFigure(recipe, request, on_paper(recipe, draw_figure(recipe.drawing, request)))


def on_paper(recipe: Recipe, figure: Figure) -> Figure:
    """The figure with the width and font of its recipe."""
    return replace(figure, width=recipe.width or figure.width, font=recipe.font)


def _file_path(option: str, recipe: Recipe, root: Path, files: Mapping[str, object]) -> str:
    """The path of a file that a recipe names: the one in `files`, else an annotation with the same digest."""
    from workbench.store import segment_annotations

    file = recipe.files[option]
    if option in files:
        return str(files[option])
    for path in segment_annotations.files(root, recipe.test):
        if path.name == file["file"] and digest_of(path) == file["sha256"]:
            return str(path)
    raise RunError(f"{recipe.drawing} was drawn with the file {file['file']!r}; name it: --file {option}=FILE")


def _find(name: str, root: Path, model: str | None) -> Run:
    """The run of a name below `root`, under this name, which may be the last part of its path as in commands."""
    folder, step = split_reference(name)
    if (exhibits.run_folder(folder, root) / CONFIG).is_file():
        return open_run(name, root)
    names = _ending_alike([run.name for run in list_runs(root) if not run.problem], folder.as_posix())
    if not names:
        raise RunError(f"there is no run {name!r} below {root}; name the folder that holds it as the runs folder")
    matches = [open_run(f"{match}@{step}" if step else match, root) for match in names]
    if len(matches) > 1 and model is not None:
        matches = [run for run in matches if digests(run, "").get("model") == model] or matches
    if len(matches) > 1:
        raise RunError(
            f"{len(matches)} runs below {root} could be {name!r}: {', '.join(run.name for run in matches)}; name the "
            "folder of the right one as the runs folder"
        )
    return replace(matches[0], name=name)


def _palette_run(name: str, root: Path, runs: Sequence[Run]) -> Run:
    """A run that only decides the styles of others: a drawn one, one below `root`, or a missing one by its name."""
    drawn = {run.name: run for run in runs}
    if name in drawn:
        return drawn[name]
    try:
        return _find(name, root, None)
    except RunError:
        folder, step = split_reference(name)
        return Run(root / folder, name, step=step)


def _ending_alike(names: Sequence[str], ending: str) -> list[str]:
    return [name for name in names if name.endswith(f"/{ending}") or ending.endswith(f"/{name}")]
