"""What a figure was asked for, as plain data that outlives the opened runs: baskets and exported files keep it.

Names runs, never their folders, which mean nothing on another machine; so it is with files that options name, once a
recipe is to travel (`portable`). Knows runs and drawings, no file format.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from core_models.config import CONFIG, split_reference
from core_models.settings import Section
from workbench import drawing
from workbench.drawing import Request
from workbench.file_digests import digest_of
from workbench.runs import Run, RunError, list_runs, open_run

if TYPE_CHECKING:
    from workbench.figures.grammar import Figure


class Recipe(Section):
    """A drawing and its request, runs by name, the baseline first. `width` is that on paper, "" the figure's own.
    `among`: the runs that were chosen, where others than those drawn; they decide how a run looks.

    A file that an option names stands in a portable one as {"file": its name, "sha256": a digest}.
    """

    drawing: str
    runs: tuple[str, ...] = ()
    among: tuple[str, ...] = ()
    test: str = "test"
    sentence: int = 0
    baseline: str | None = None
    options: dict[str, Any] = {}
    width: Literal["", "column", "page"] = ""

    @property
    def files(self) -> dict[str, dict[str, str]]:
        """The files that were named, by option, as far as only their names are known here."""
        return {option: value for option, value in self.options.items() if _is_name(value)}

    @property
    def key(self) -> str:
        """Tells recipes apart, the same in every session."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]


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


def recipe_of(name: str, request: Request, width: Literal["", "column", "page"] = "") -> Recipe:
    """The recipe of a request. Options become JSON types, so that a recipe read back from a file is the same."""
    return Recipe(
        drawing=name,
        runs=tuple(run.name for run in request.runs),
        among=tuple(run.name for run in request.among),
        test=request.test,
        sentence=request.sentence if drawing.of_a_sentence(name) else 0,
        baseline=request.baseline,
        options=json.loads(json.dumps(request.options, default=str)),
        width=width,
    )


def portable(recipe: Recipe) -> Recipe:
    """The recipe as it may travel: of every file that an option names its name and a digest, and no path."""
    options = {option: _named(value) for option, value in recipe.options.items()}
    return recipe.model_copy(update={"options": options})


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
        raise RunError(f"--set {unknown[0]}: what was drawn once takes files alone, by option; {named}")


def draw(
    recipe: Recipe, root: str | Path, models: Mapping[str, str] | None = None, files: Mapping[str, object] | None = None
) -> Drawn:
    """Draw the figure of a recipe (see `request_of`). Raises RunError."""
    request = request_of(recipe, root, models, files)
    return Drawn(recipe, request, on_paper(recipe, drawing.draw(recipe.drawing, request)))


def on_paper(recipe: Recipe, figure: Figure) -> Figure:
    """The figure as wide as its recipe says."""
    return replace(figure, width=recipe.width) if recipe.width else figure


def figure_command(name: str, request: Request, elsewhere: bool = False) -> str:
    """The command line that draws the same figure. elsewhere: for readers on another machine, files by name alone."""
    words = ["workbench", "figure", name]
    for run in request.runs:
        words += ["--run", path_of(run)]
    for run in request.among:
        words += ["--among", path_of(run)]
    words += ["--test", request.test] if request.test else []
    words += ["--sentence", str(request.sentence)] if drawing.of_a_sentence(name) else []
    words += ["--baseline", request.baseline] if request.baseline else []
    for option, value in request.options.items():
        if elsewhere and isinstance(named := _named(value), dict):
            value = named["file"]
        words += ["--set", f"{option}={json.dumps(value, ensure_ascii=False)}"]
    return shlex.join([*words, "--out", f"{name}.pdf"])


def path_of(run: Run) -> str:
    """RUN or RUN@step for a command line: from the current folder where the run is below it."""
    folder, here = run.folder.absolute(), Path.cwd()
    near = folder.relative_to(here) if folder.is_relative_to(here) else run.folder
    return f"{near}@{run.step}" if run.step else str(near)


def provenance(name: str, request: Request, figure: Figure) -> dict[str, Any]:
    """What a drawn figure says about where it comes from: recipe, digests of its runs, seed of resampling, commit."""
    said: dict[str, Any] = {
        "recipe": portable(recipe_of(name, request)).model_dump(mode="json"),
        "digests": {run.name: digests_of(run, request) for run in request.runs},
    }
    if _resampled(figure):
        from analyses.significance import DEFAULT_SEED

        said["resampling_seed"] = DEFAULT_SEED
    return {**said, **({"commit": commit()} if commit() else {})}


def digests(run: Run, test: str) -> dict[str, str]:
    """What a run is now: digests of its model (configuration and weights), its translations of a test set, its log."""
    parts = {
        "model": (run.folder / CONFIG, run.weights),
        "translations": (run.translations_folder(test) / "hypotheses.txt",),
        "training log": (run.folder / "training.jsonl",),
    }
    found = {part: [digest_of(path) for path in paths if path.is_file()] for part, paths in parts.items()}
    return {part: hashlib.sha256("".join(each).encode()).hexdigest()[:16] for part, each in found.items() if each}


def digests_of(run: Run, request: Request) -> dict[str, str]:
    """`digests` of a run for all test sets that a request is of."""
    further = {test: digests(run, test).get("translations") for test in request.tests if test != request.test}
    named = {f"translations of {test}": digest for test, digest in further.items() if digest}
    return {**digests(run, request.test), **named}


def _named(value: Any) -> Any:
    """The name and the digest of a file in place of its path; any other value as it is."""
    if not isinstance(value, str) or not (os.sep in value or Path(value).suffix) or not os.path.isfile(value):
        return value
    return {"file": Path(value).name, "sha256": digest_of(Path(value))}


def _is_name(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"file", "sha256"}:
        return False
    return all(isinstance(part, str) for part in value.values())


def _found(option: str, recipe: Recipe, root: Path, files: Mapping[str, object]) -> str:
    """The path of a file that a recipe knows by name: the one that is given, else an annotation with its digest."""
    from workbench import segment_annotations

    wanted = recipe.files[option]
    if option in files:
        return str(files[option])
    for path in segment_annotations.files(root, recipe.test):
        if path.name == wanted["file"] and digest_of(path) == wanted["sha256"]:
            return str(path)
    raise RunError(f"{recipe.drawing} was drawn with the file {wanted['file']!r}; name it: --set {option}=FILE")


def _resampled(figure: Figure) -> bool:
    """Does it show intervals?"""
    return any(getattr(mark, "low", None) for panel in figure.panels for mark in panel.marks)


@lru_cache(maxsize=1)
def commit() -> str:
    """The commit of the checkout that this code stands in, "-dirty" where files were changed since; "" elsewhere."""
    checkout = Path(__file__).resolve().parents[1]
    if not (checkout / ".git").exists():
        return ""
    asked = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):  # no git here, or one that refuses a folder of another user
        return ""


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
