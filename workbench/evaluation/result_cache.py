"""What took long to compute of a run and a test set, kept beside the run: RESULTS/KIND/TEST.json.

A result is kept with digests of what it was computed from, and is there only as long as these are still the same. It
knows files and digests, not what a result means; whoever computed one can always compute it again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core_models.files.atomic_files import write_whole
from core_models.files.run_files import RESULT, read_json
from workbench.evaluation.document_context import readers
from workbench.store.runs import Run

ADEQUACY, COUNTERPARTS, ALIGNMENT_ERROR, PROBE = KINDS = ("adequacy", "counterparts", "alignment_error", "probe")


def keep(run: Run, test: str, kind: str, of: Mapping[str, str], result: Mapping[str, Any]) -> None:
    """Keep a result (JSON) of one of KINDS; nothing is kept where runs are for reading only.

    of: the `digests` as they were before anything was computed: what it is computed from may change meanwhile.
    """
    path = _path(run, test, kind)
    content = json.dumps({"of": dict(of), **result}, ensure_ascii=False, indent=1)
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        write_whole(path, content)


def kept(run: Run, test: str, kind: str) -> dict[str, Any] | None:
    """The result that was kept; None where there is none, or one of other texts or weights than the run has now."""
    try:
        found = read_json(_path(run, test, kind), RESULT)
    except (OSError, ValueError):  # not there or damaged: to be computed again
        return None
    same = isinstance(found, dict) and found.get("of") == digests(run, test, kind)
    return found if same else None


def paths(run: Run, test: str) -> list[Path]:
    """The files that results of a test set are kept in, there or not."""
    return [_path(run, test, kind) for kind in KINDS]


def digests(run: Run, test: str, kind: str) -> dict[str, str]:
    """What a result is of: adequacy and counterparts of translations; an alignment error, a probe of weights and forced
    references, in their documents where the run reads these."""
    from analyses import text_checks

    found = run.translations(test)
    texts = [found.test_set.sources, *found.test_set.all_references]
    if kind in (ADEQUACY, COUNTERPARTS):
        return {"texts": text_checks.digest(*texts, found.hypotheses)}
    documents = [found.test_set.documents] if found.test_set.documents is not None and readers(run) else []
    return {"texts": text_checks.digest(*texts, *documents), "weights": run.digest}


def _path(run: Run, test: str, kind: str) -> Path:
    return run.results / kind / f"{test}.json"
