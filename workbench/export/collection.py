"""The figure collection: recipes of figures in a file below the runs folder; a reload or a restart loses nothing.

    ROOT/.basket.json: {"version": 1, "figures": [{"recipe": {...}}, ...]}

Every change reads the file, changes it and writes it whole under a lock: two tabs do not lose each other's figures.
It draws nothing. The manifest of a bundle has the same form and can be read as a collection.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from core_models.files.atomic_files import write_atomic
from core_models.files.file_marks import mended
from core_models.files.run_files import RESULT, read_json
from core_models.settings import ConfigError, parse
from workbench.figures.spec import Recipe
from workbench.store import read_only
from workbench.store.runs import RunError

VERSION = 1
_PATIENCE = 10.0  # seconds that a change waits for another one


def file_of(root: str | Path) -> Path:
    """Where the figure collection of a runs folder is kept."""
    return Path(root) / ".basket.json"


def read(path: Path) -> list[Recipe]:
    """The recipes of a collection or of a bundle's manifest, none where there is no file; raises RunError for another
    content."""
    try:
        found = read_json(mended(path), RESULT)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(
            f"{path}: the figure collection cannot be read ({(error.strerror or str(error)).lower()})"
        ) from None
    except ValueError:
        raise _not_a_collection(path, "it is not JSON") from None
    figures = found.get("figures") if isinstance(found, dict) else None
    if not isinstance(figures, list) or not all(_holds_a_recipe(figure) for figure in figures):
        raise _not_a_collection(path, "it has no list of figures, each with its recipe")
    if found.get("version") != VERSION:
        raise _not_a_collection(path, f"its version is {found.get('version')!r}, not {VERSION}")
    try:
        return [parse(Recipe, figure["recipe"], f"{path}, figure {n}") for n, figure in enumerate(figures, start=1)]
    except ConfigError as error:
        raise RunError(str(error)) from None


def add(path: Path, recipe: Recipe) -> None:
    """Put a figure in, at the end; one that is in it already stays where it is."""
    with _changing(path) as recipes:
        if recipe not in recipes:
            recipes.append(recipe)


def remove(path: Path, recipe: Recipe) -> None:
    """Take a figure out, if it is still in."""
    with _changing(path) as recipes:
        recipes[:] = [kept for kept in recipes if kept != recipe]


def move(path: Path, recipe: Recipe, by: int) -> None:
    """Move a figure by so many places, backwards where negative; it stops at the ends."""
    with _changing(path) as recipes:
        if recipe in recipes:
            place = recipes.index(recipe)
            recipes.insert(max(0, min(place + by, len(recipes) - 1)), recipes.pop(place))


def replace(path: Path, recipe: Recipe, changed: Recipe) -> None:
    """Put a figure in the place of another."""
    with _changing(path) as recipes:
        if recipe in recipes and changed not in recipes:
            recipes[recipes.index(recipe)] = changed


def clear(path: Path) -> None:
    """Take all figures out."""
    with _changing(path) as recipes:
        recipes.clear()


def content(recipes: Sequence[Recipe], **beside: Any) -> dict[str, Any]:
    """What the file of a collection says, with whatever stands beside the figures."""
    return {**beside, "version": VERSION, "figures": [{"recipe": recipe.model_dump(mode="json")} for recipe in recipes]}


@contextmanager
def _changing(path: Path) -> Iterator[list[Recipe]]:
    """The recipes, to be changed in place. Raises RunError, ReadOnlyError."""
    read_only.check()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f"{path.name}.lock"), timeout=_PATIENCE):
            recipes = read(path)
            before = list(recipes)
            yield recipes
            if recipes != before:
                write_atomic(path, json.dumps(content(recipes), indent=1))
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise RunError(
            f"{path.parent}: the figure collection cannot be kept here ({said}); the workbench needs to write into the "
            "runs folder"
        ) from None


def _holds_a_recipe(figure: object) -> bool:
    return isinstance(figure, dict) and isinstance(figure.get("recipe"), dict)


def _not_a_collection(path: Path, said: str) -> RunError:
    return RunError(f"{path}: not a figure collection: {said}; mend it, or delete it to begin a new one")
