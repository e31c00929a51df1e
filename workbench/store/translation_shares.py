"""Files with the translations of some sentences of a test set, a JSON record a line, whole or not there.

The first line says how long they took, each other has the row of a sentence and its translation. Numbers come back to
the bit, so that translations gathered from such files are written as if they had never been in files. What a record
must have is checked where the translations are read, as of all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.files.atomic_files import write_atomic
from workbench.store.errors import RunError
from workbench.store.translation_writer import detail
from workbench.store.translations import read_records

if TYPE_CHECKING:
    from core_models.translator import Translation


def write_share(path: Path, translations: Mapping[int, Translation], seconds: float) -> None:
    """Write the translations of some rows atomically."""
    lines: list[dict[str, Any]] = [{"seconds": seconds}]
    for row, translation in translations.items():
        lines.append({"row": row, "text": translation.text, **detail(translation), "tree": translation.tree})
    write_atomic(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def read_shares(paths: Iterable[Path], sentences: int) -> tuple[list[Translation], float]:
    """The translations of all rows of a test set, and the seconds they took; raises RunError for a damaged file."""
    found: dict[int, Translation] = {}
    seconds = 0.0
    for path in paths:
        try:
            taken, *lines = read_records(path)
            seconds += taken["seconds"]
            found |= {line["row"]: _translation(line) for line in lines}
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise RunError(
                f"{path}: this share cannot be read ({type(error).__name__}: {error}); remove it, and give the same "
                "command again"
            ) from None
    if sorted(found) != list(range(sentences)):
        raise RunError(
            f"these shares are not of {sentences} sentences; remove their folder, and give the same command again"
        )
    return [found[row] for row in range(sentences)], seconds


def _translation(line: Mapping[str, Any]) -> Translation:
    from core_models.translator import Translation

    others = [
        Translation(other["text"], other["tokens"], [], other["score"], other["log_prob"], [], True, [])
        for other in line["n_best"]
    ]
    own = {name: line[name] for name in ("tokens", "source_tokens", "score", "log_prob", "token_log_probs", "finished")}
    return Translation(text=line["text"], **own, ids=[], n_best=others, tree=line["tree"])
