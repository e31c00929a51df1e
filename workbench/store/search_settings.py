"""Whether compared translations were found by the same search, from what their meta.json says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core_models.config import SearchConfig
from workbench.store.runs import Run, short_names

_SAME_RESULT = ("batch_tokens", "compile", "n_best")  # settings that decide how fast and how many, not which is best


def search_note(runs: Sequence[Run], tests: Iterable[str]) -> str:
    """A sentence on each test set that the runs have translated with different settings; "" if there is none."""
    names = short_names(runs)
    return " ".join(
        f"The translations of {test} come from different searches ({listed}); part of a difference may be due to that."
        for test in tests
        if (listed := _different({names[run.name]: search_of(run, test) for run in runs}))
    )


def search_of(run: Run, test: str) -> dict[str, object]:
    """What decides which translation is best, with the defaults of settings that came later; {} if made elsewhere."""
    meta = run.translations(test).meta
    if not meta.get("search"):
        return {}
    settings = {**SearchConfig().model_dump(), **SearchConfig.by_current_names(meta["search"])}
    return {
        **{key: settings[key] for key in SearchConfig.model_fields if key not in _SAME_RESULT},
        "engine": meta.get("engine", "workbench"),
    }


def _different(searches: dict[str, dict[str, object]]) -> str:
    """The settings that differ, each value with its runs; "" if none does. Runs without settings are left out."""
    known = {name: search for name, search in searches.items() if search}
    keys = next(iter(known.values()), {})
    differing = [key for key in keys if len({repr(search[key]) for search in known.values()}) > 1]
    groups: dict[str, list[str]] = {}
    for name, search in known.items():
        label = ", ".join(f"{key} {search[key]}" for key in differing)
        groups.setdefault(label, []).append(name)
    return "; ".join(f"{label}: {', '.join(of_it)}" for label, of_it in groups.items()) if differing else ""
