"""The figure collection: recipes of figures in a file below the runs folder, which survives reloads and restarts.

    ROOT/.basket.json: {"version": 1, "figures": [{"recipe": {...}}, ...]}

Every change reads, changes and atomically writes the file under a lock: two tabs do not lose each other's figures.
Draws nothing. The manifest of a bundle has the same format and can be read as a collection.
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
    """The file of a runs folder's figure collection."""
    return Path(root) / ".basket.json"


def read(path: Path) -> list[Recipe]:
    """Read the recipes of a collection or a bundle's manifest; empty without a file.

    Raises RunError for other content.
    """
    try:
        stored = read_json(mended(path), RESULT)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(
            f"{path}: the figure collection cannot be read ({(error.strerror or str(error)).lower()})"
        ) from None
    except ValueError:
        raise _not_a_collection(path, "it is not JSON") from None
    figures = stored.get("figures") if isinstance(stored, dict) else None
    if not isinstance(figures, list) or not all(_holds_a_recipe(figure) for figure in figures):
        raise _not_a_collection(path, "it has no list of figures, each with its recipe")
    if stored.get("version") != VERSION:
        raise _not_a_collection(path, f"its version is {stored.get('version')!r}, not {VERSION}")
    try:
        return [parse(Recipe, figure["recipe"], f"{path}, figure {n}") for n, figure in enumerate(figures, start=1)]
    except ConfigError as error:
        raise RunError(str(error)) from None


def add(path: Path, recipe: Recipe) -> None:
    """Append a figure; one that is in it already stays where it is."""
    with _changing(path) as recipes:
        if recipe not in recipes:
            recipes.append(recipe)


def remove(path: Path, recipe: Recipe) -> None:
    """Remove a figure if it is still there."""
    with _changing(path) as recipes:
        recipes[:] = [other for other in recipes if other != recipe]


def move(path: Path, recipe: Recipe, by: int) -> None:
    """Move a figure by a number of positions, backwards if negative, at most to the ends."""
    with _changing(path) as recipes:
        if recipe in recipes:
            position = recipes.index(recipe)
            recipes.insert(max(0, min(position + by, len(recipes) - 1)), recipes.pop(position))


def replace(path: Path, recipe: Recipe, changed: Recipe) -> None:
    """Replace a figure by another."""
    with _changing(path) as recipes:
        if recipe in recipes and changed not in recipes:
            recipes[recipes.index(recipe)] = changed


def clear(path: Path) -> None:
    """Remove all figures."""
    with _changing(path) as recipes:
        recipes.clear()


def content(recipes: Sequence[Recipe], **extra: Any) -> dict[str, Any]:
    """The content of a collection's file, with `extra` keys beside the figures."""
    return {**extra, "version": VERSION, "figures": [{"recipe": recipe.model_dump(mode="json")} for recipe in recipes]}


@contextmanager
def _changing(path: Path) -> Iterator[list[Recipe]]:
    """Yield the recipes to be changed in place, under the lock. Raises RunError and ReadOnlyError."""
    read_only.check()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f"{path.name}.lock"), timeout=_PATIENCE):
            recipes = read(path)
            unchanged = list(recipes)
            yield recipes
            if recipes != unchanged:
                write_atomic(path, json.dumps(content(recipes), indent=1))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise RunError(
            f"{path.parent}: the figure collection cannot be kept here ({reason}); the workbench needs to write into "
            "the runs folder"
        ) from None


def _holds_a_recipe(figure: object) -> bool:
    return isinstance(figure, dict) and isinstance(figure.get("recipe"), dict)


def _not_a_collection(path: Path, reason: str) -> RunError:
    return RunError(f"{path}: not a figure collection: {reason}; mend it, or delete it to begin a new one")
