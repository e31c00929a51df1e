"""Figures drawn again from what is stored of them: the runs found by name below a folder, the files by digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core_models.config import CONFIG, split_reference
from workbench.figures.drawing import draw as draw_figure
from workbench.figures.request import Request
from workbench.figures.spec import Recipe, figure_command
from workbench.store.file_digests import digest_of
from workbench.store.provenance import digests
from workbench.store.runs import Run, RunError, list_runs, open_run

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


@dataclass(frozen=True)
class Drawn:
    """A recipe, the request that it became where the runs are, and the figure."""

    recipe: Recipe
    request: Request
    figure: Figure

    @property
    def command(self) -> str:
        """The command line that draws the figure."""
        return figure_command(self.recipe.drawing, self.request)


def request_of(
    recipe: Recipe, root: str | Path, models: Mapping[str, str] | None = None, files: Mapping[str, object] | None = None
) -> Request:
    """The request of a recipe, its runs looked for below `root`; raises RunError where one is not there.

    models: digests of the models that the runs had, to choose by where two runs share a name. files: a path for each
    option whose file only the name is known of; annotations below `root` are found without.
    """
    runs = tuple(_find(name, Path(root), (models or {}).get(name)) for name in recipe.runs)
    found = {option: _found(option, recipe, Path(root), files or {}) for option in recipe.files}
    among = tuple(_known(name, Path(root), runs) for name in recipe.among)
    return Request(runs, recipe.test, recipe.sentence, recipe.baseline, {**recipe.options, **found}, among)


def check_files(recipes: Sequence[Recipe], files: Mapping[str, object]) -> None:
    """Raises RunError for a file that none of the recipes asks for."""
    wanted = sorted({option for recipe in recipes for option in recipe.files})
    unknown = [option for option in files if option not in wanted]
    if unknown:
        named = f"there is {', '.join(wanted)}" if wanted else "no file is named in it"
        raise RunError(f"--file {unknown[0]}: what was drawn once takes files alone, by option; {named}")


def draw(
    recipe: Recipe, root: str | Path, models: Mapping[str, str] | None = None, files: Mapping[str, object] | None = None
) -> Drawn:
    """Draw the figure of a recipe (see `request_of`). Raises RunError."""
    request = request_of(recipe, root, models, files)
    return Drawn(recipe, request, on_paper(recipe, draw_figure(recipe.drawing, request)))


def on_paper(recipe: Recipe, figure: Figure) -> Figure:
    """The figure as wide as its recipe says."""
    return replace(figure, width=recipe.width) if recipe.width else figure


def _found(option: str, recipe: Recipe, root: Path, files: Mapping[str, object]) -> str:
    """The path of a file that a recipe knows by name: the one that is given, else an annotation with its digest."""
    from workbench.store import segment_annotations

    wanted = recipe.files[option]
    if option in files:
        return str(files[option])
    for path in segment_annotations.files(root, recipe.test):
        if path.name == wanted["file"] and digest_of(path) == wanted["sha256"]:
            return str(path)
    raise RunError(f"{recipe.drawing} was drawn with the file {wanted['file']!r}; name it: --file {option}=FILE")


def _find(name: str, root: Path, model: str | None) -> Run:
    """The run of a name below `root`, under this name. Commands know runs by the last part of their path."""
    folder, step = split_reference(name)
    if (root / folder / CONFIG).is_file():
        return open_run(name, root)
    alike = _ending_alike([run.name for run in list_runs(root) if not run.problem], folder.as_posix())
    if not alike:
        raise RunError(f"there is no run {name!r} below {root}; name the folder that holds it as the runs folder")
    found = [open_run(f"{one}@{step}" if step else one, root) for one in alike]
    if len(found) > 1 and model is not None:
        found = [run for run in found if digests(run, "").get("model") == model] or found
    if len(found) > 1:
        raise RunError(
            f"{len(found)} runs below {root} could be {name!r}: {', '.join(run.name for run in found)}; name the "
            "folder of the right one as the runs folder"
        )
    return replace(found[0], name=name)


def _known(name: str, root: Path, runs: Sequence[Run]) -> Run:
    """The run of a name that only decides how others look: one of those drawn, one below `root`, or gone by now."""
    drawn = {run.name: run for run in runs}
    if name in drawn:
        return drawn[name]
    try:
        return _find(name, root, None)
    except RunError:
        folder, step = split_reference(name)
        return Run(root / folder, name, step=step)


def _ending_alike(names: Sequence[str], wanted: str) -> list[str]:
    return [name for name in names if name.endswith(f"/{wanted}") or wanted.endswith(f"/{name}")]
