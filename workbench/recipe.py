"""What a figure was asked for, as plain data that outlives the opened runs: baskets and exported files keep it.

Names runs, never their folders, which mean nothing on another machine. Knows runs and drawings, no file format.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from core_models.config import CONFIG, Section, split_reference
from workbench import drawing
from workbench.drawing import Request
from workbench.runs import Run, RunError, list_runs, open_run

if TYPE_CHECKING:
    from workbench.figures.grammar import Figure


class Recipe(Section):
    """A drawing and its request, runs by name, the baseline first. `width` is that on paper, "" the figure's own."""

    drawing: str
    runs: tuple[str, ...] = ()
    test: str = "test"
    sentence: int = 0
    baseline: str | None = None
    options: dict[str, Any] = {}
    width: Literal["", "column", "page"] = ""

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
        test=request.test,
        sentence=request.sentence if drawing.of_a_sentence(name) else 0,
        baseline=request.baseline,
        options=json.loads(json.dumps(request.options, default=str)),
        width=width,
    )


def request_of(recipe: Recipe, root: str | Path, models: Mapping[str, str] | None = None) -> Request:
    """The request of a recipe, its runs looked for below `root`; raises RunError where one is not there.

    models: digests of the models that the runs had, to choose by where two runs share a name.
    """
    runs = tuple(_find(name, Path(root), (models or {}).get(name)) for name in recipe.runs)
    return Request(runs, recipe.test, recipe.sentence, recipe.baseline, dict(recipe.options))


def draw(recipe: Recipe, root: str | Path, models: Mapping[str, str] | None = None) -> Drawn:
    """Draw the figure of a recipe. Raises RunError."""
    request = request_of(recipe, root, models)
    return Drawn(recipe, request, on_paper(recipe, drawing.draw(recipe.drawing, request)))


def on_paper(recipe: Recipe, figure: Figure) -> Figure:
    """The figure as wide as its recipe says."""
    return replace(figure, width=recipe.width) if recipe.width else figure


def figure_command(name: str, request: Request) -> str:
    """The command line that draws the same figure."""
    words = ["workbench", "figure", name]
    for run in request.runs:
        words += ["--run", path_of(run)]
    words += ["--test", request.test] if request.test else []
    words += ["--sentence", str(request.sentence)] if drawing.of_a_sentence(name) else []
    words += ["--baseline", request.baseline] if request.baseline else []
    for option, value in request.options.items():
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
        "recipe": recipe_of(name, request).model_dump(mode="json"),
        "digests": {run.name: digests(run, request.test) for run in request.runs},
    }
    if _resampled(figure):
        from analyses.significance import DEFAULT_SEED

        said["resampling_seed"] = DEFAULT_SEED
    return {**said, **({"commit": commit()} if commit() else {})}


def digests(run: Run, test: str) -> dict[str, str]:
    """What a run is now: digests of its model (configuration and weights), its translations of a test set, its log."""
    parts = {
        "model": (run.folder / CONFIG, run.weights),
        "translations": (run.results / "translations" / test / "hypotheses.txt",),
        "training log": (run.folder / "training.jsonl",),
    }
    found = {part: [_digest_of(path) for path in paths if path.is_file()] for part, paths in parts.items()}
    return {part: hashlib.sha256("".join(each).encode()).hexdigest()[:16] for part, each in found.items() if each}


def _digest_of(path: Path) -> str:
    state = path.stat()
    return _digest(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _digest(path: Path, modified: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def _ending_alike(names: Sequence[str], wanted: str) -> list[str]:
    return [name for name in names if name.endswith(f"/{wanted}") or wanted.endswith(f"/{name}")]
