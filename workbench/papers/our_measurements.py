"""Our measurements other than scores, comparable with published ones: sizes, speeds, alignment, adequacy, routing.

Nothing is trained, translated or timed here: measurements are read from a run's log, traces and cached results, and
from tables of `workbench benchmark speed`. A measurement is a record of `FIELDS`. Knows runs and result files alone.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.evaluation.adequacy import ADEQUACY
from workbench.evaluation.alignment_error import ALIGNMENT_ERROR
from workbench.evaluation.result_cache import of_forced_references, of_translations
from workbench.evaluation.translate import prepared_of
from workbench.papers.records import Record
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import numpy as np

# part: of the test set; iteration: of a routing; how: notes on the measurement.
FIELDS = ["measure", "score", "low", "high", "n", "signature", "system", "where", "data", "test", "languages", "how",
          "iteration", "part"]  # fmt: skip
SPEED_TABLES = "*speed*.csv"
MAX_TRACED = 200  # sentences read from a trace, the first ones
PROXIES = ("over", "under")  # we count by alignment links, papers report human counts
# CDR over all words, as papers report it; the mean over sentences has no published counterpart.
_ADEQUACY = {"CDR": "cdr", "over (proxy, %)": "over", "under (proxy, %)": "under"}
_MEASURE_OF_COLUMN = {
    "parameters": "parameters",
    "parameters_without_embeddings": "parameters-without-embeddings",
    "train_ratio": "train-speed",
    "decode_ratio": "decode-speed",
}
_SHARED_SETTINGS = ("backbone", "preset", "d_model", "embedding")  # settings that a system and its baseline share


def origin_fields(run: Run, test: str) -> Record:
    """The origin fields of a run's record: system, where, data, test, languages ("" if unknown)."""
    languages = ""
    with suppress(RunError):  # its data is missing
        manifest = prepared_of(run).manifest
        sides = [str(manifest.get(f"{side}_language") or "") for side in ("source", "target")]
        languages = "-".join(sides) if all(sides) else ""
    data = run.config.data_folder(run.folder).parent.name
    return {"system": run.system, "where": f"run {run.name}", "data": data, "test": test, "languages": languages}


def run_records(run: Run, base: Run | None, test: str, requested: frozenset[str]) -> Iterator[Record]:
    """The requested measures that a run has, except speeds; base: the run of its baseline."""
    origin = origin_fields(run, test)
    if sizes := {measure for measure in requested if measure.startswith("parameters")}:
        yield from ({**origin, "test": "", **size} for size in _sizes(run, base) if size["measure"] in sizes)
    if "aer" in requested and (alignment_error := ALIGNMENT_ERROR.load(run, of_forced_references(run, test), test)):
        maps = f"layer {alignment_error.layer}, head {alignment_error.head}, between {alignment_error.argmax}"
        how = f"argmax of attention ({maps}), references forced, gold links: {alignment_error.links}"
        yield {
            **origin,
            "measure": "aer",
            "score": 100 * alignment_error.aer,
            "n": alignment_error.sentences,
            "how": how,
        }
    if requested.intersection(_ADEQUACY.values()) and (stored := ADEQUACY.load(run, of_translations(run, test), test)):
        how = f"links of the frozen aligner {stored.aligner}"
        if stored.towards == "union":
            how += ", towards all references together"
        for row in stored.measures:
            if (measure := _ADEQUACY.get(row.measure)) is None:
                continue
            note = "a proxy by alignment links, not a human count; " if measure in PROXIES else ""
            yield {**origin, **row.model_dump(), "measure": measure, "how": note + how}
    if requested & {"entropy", "diversity"}:
        yield from ({**origin, **values} for values in _routing(run, test))


def result_files(run: Run, test: str) -> list[Path]:
    """The files of cached results that `run_records` reads, which need not exist."""
    return [cache.path(run, test) for cache in (ALIGNMENT_ERROR, ADEQUACY)]


def _sizes(run: Run, base: Run | None) -> Iterator[Record]:
    """Parameters in millions from the training log; added ones relative to a baseline of the same text and width."""
    how, start = "with its own vocabulary and width", _start_event(run)
    for name in ("parameters", "parameters_without_embeddings"):
        if name in start:
            yield {"measure": _MEASURE_OF_COLUMN[name], "score": start[name] / 1e6, "how": how}
    if base is not None and base is not run and _are_comparable(run, base):
        base_start = _start_event(base)
        if "parameters" in start and "parameters" in base_start:
            added = (start["parameters"] - base_start["parameters"]) / 1e6
            yield {"measure": "parameters-added", "score": added, "how": f"to run {base.name}"}


def _start_event(run: Run) -> Mapping[str, Any]:
    """The start event of the training log."""
    return next((event for event in run.events() if event.get("event") == "start"), {})


def _are_comparable(run: Run, base: Run) -> bool:
    """Return True if two runs differ only in their mechanisms, as far as size and speed are concerned."""
    same_text = run.config.data_folder(run.folder) == base.config.data_folder(base.folder)
    return same_text and all(
        getattr(run.config.model, name) == getattr(base.config.model, name) for name in _SHARED_SETTINGS
    )


def speed_records(run: Run, base: Run, test: str, requested: frozenset[str]) -> Iterator[Record]:
    """Training and decoding speed of a run relative to its baseline, from their logs.

    Other load of the machine at the time affects these ratios; a benchmark is more reliable.
    """
    if base is run or not _are_comparable(run, base):
        return
    origin = {
        **origin_fields(run, test),
        "how": f"to run {base.name}, by their logs, so affected by other load on the machine",
    }
    ratio = _ratio(_training_speed(run), _training_speed(base))
    if "train-speed" in requested and ratio is not None:
        yield {**origin, "test": "", "measure": "train-speed", "score": ratio}
    ratio = _ratio(_decoding_speed(run, test), _decoding_speed(base, test))
    if "decode-speed" in requested and ratio is not None:
        yield {**origin, "measure": "decode-speed", "score": ratio}


Speed = tuple[float, object] | None  # (speed, conditions of the measurement)


def _ratio(speed: Speed, base: Speed) -> float | None:
    return None if speed is None or base is None or speed[1] != base[1] else speed[0] / base[0]


def _training_speed(run: Run) -> Speed:
    """Median of target tokens per second, with device, precision and batch size as conditions."""
    lines = [event for event in run.events() if event["event"] == "train"]
    speeds = [line["tokens_per_second"] for line in lines if line.get("tokens_per_second")]
    start = _start_event(run)
    conditions = [start.get(name) for name in ("device", "processes", "threads", "precision")]
    training = run.config.training
    return (statistics.median(speeds), [*conditions, training.batch_tokens, training.accumulate]) if speeds else None


def _decoding_speed(run: Run, test: str) -> Speed:
    """Sentences of a test set per second, with engine, device and search settings as conditions."""
    if test not in run.tests():
        return None
    meta = run.translations(test).meta
    conditions = [meta.get(name) for name in ("engine", "device", "search")]
    return (meta["sentences"] / meta["seconds"], conditions) if meta.get("seconds") else None


def _routing(run: Run, test: str) -> Iterator[Record]:
    """Entropy and diversity of each iteration over the sentences of a stored trace."""
    from analyses import routing

    try:
        store = run.traces(test)
    except RunError:
        return
    names = [name for side in ("encoder", "decoder") for name in store.names if name.endswith(f"{side}.assignments")]
    if not names:
        return
    name = names[0]
    rows = [row for row in list(store)[:MAX_TRACED] if name in store[row]]
    arrays = (store.array(name, row).values for row in rows)
    per_sentence = [(routing.entropy(array), routing.diversity(array), array.shape[-2:]) for array in arrays]
    layers, capsules = per_sentence[0][2]
    how = (
        f"{name.split('.')[1]}, {layers} layers and {capsules} capsules, mean over positions and {len(rows)} sentences"
    )
    for index, measure in enumerate(("entropy", "diversity")):
        for iteration, values in enumerate(zip(*(measures[index] for measures in per_sentence), strict=True), start=1):
            score, low, high = _mean(values)
            yield {"measure": measure, "iteration": iteration, "score": score, "low": low, "high": high,
                   "n": len(rows), "how": how}  # fmt: skip


def _mean(values: tuple[np.ndarray, ...]) -> tuple[float, float, float]:
    """The mean over sentences with its 95% bootstrap interval."""
    import numpy as np

    from analyses.significance import mean_interval

    column = np.asarray(values, dtype=np.float64)
    return float(column.mean()), *mean_interval(column)


def benchmark_engines(results: Path) -> list[Record]:
    """Every engine in a folder's tables of `workbench benchmark speed`, with its `conditions` and its `where`."""
    import pandas as pd

    engines = []
    for path in sorted(results.glob(SPEED_TABLES)):
        try:
            table = pd.read_csv(path).dropna(subset=["system"])  # other engines have none
            for row in table[table["precision"] != "int8"].to_dict("records"):  # no paper here decodes in 8 bits
                conditions = (path.stem, row["precision"], row["device"], row["threads"])
                where = f"bench {path.stem} ({row['precision']}, {row['device']}, {row['threads']:g} threads)"
                engines.append({**{str(name): value for name, value in row.items()},
                              "conditions": conditions, "where": where})  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(
                f"{path}: not a table of speeds ({error}); write it again: workbench benchmark speed --csv FILE"
            ) from None
    return engines


def benchmark_records(engine: Record, base: Record | None, requested: frozenset[str]) -> Iterator[Record]:
    """The requested measures of a benchmarked engine; speeds and added parameters are relative to `base`."""
    origin = {"system": engine["system"], "where": engine["where"], "data": "random words", "test": "", "languages": ""}
    for column, measure in _MEASURE_OF_COLUMN.items():
        value = engine.get(column, math.nan)
        if measure.endswith("speed"):
            value = value / base[column] if base is not None and base is not engine else math.nan
            how = f"to {base['system']} there" if base is not None else ""
        else:
            value, how = value / 1e6, "with its own vocabulary and width"
        if measure in requested and not math.isnan(value):
            yield {**origin, "measure": measure, "score": value, "how": how}
    if "parameters-added" in requested and base is not None and base is not engine:
        added = (engine["parameters"] - base["parameters"]) / 1e6
        yield {**origin, "measure": "parameters-added", "score": added, "how": f"to {base['system']} there"}
