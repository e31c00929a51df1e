"""Speed of systems and engines: medians over rounds of measurements, ratios, and upper bounds from multiply-adds.

A machine's speed drifts by more than engines differ, so ratios are computed within a round, then their median is taken.
The measurements come from `workbench.benchmark`.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

SPEEDS = ("train_tokens_per_second", "decode_sentences_per_second")
Record = Mapping[str, Any]


def table(rounds: Sequence[Sequence[Record]], peer: str = "marian") -> pd.DataFrame:
    """One row per engine: median speeds over rounds, ratios to the first engine and to `peer`, and their ceiling.

    Columns: rounds, their number; for train and decode each: the speed; `ratio`, to the first engine; `ceiling`, the
    first engine's multiply-adds divided by this engine's, an upper bound of the ratio; `share`, ratio divided by
    ceiling; `peer`, the ratio to the peer; `ctranslate2`, that to CTranslate2 in the same precision. Ratios have their
    lowest and highest round as `_low` and `_high`.
    rounds: the same engines in the same order. Raises ValueError otherwise, and without rounds.
    """
    names = [[record["engine"] for record in records] for records in rounds]
    if not rounds or any(records != names[0] or len(set(records)) < len(records) for records in names):
        raise ValueError(f"Every round measures the same engines, each once; these measured {names}.")
    rows = []
    for position, record in enumerate(rounds[0]):
        row = {key: value for key, value in record.items() if key not in SPEEDS} | {"rounds": len(rounds)}
        for speed in SPEEDS:
            if speed not in record:
                continue
            work = speed.partition("_")[0]
            row[speed] = statistics.median(records[position][speed] for records in rounds)
            if speed in rounds[0][0]:  # the first engine may only decode
                row |= _spread(f"{work}_ratio", [records[position][speed] / records[0][speed] for records in rounds])
            by_engine = [{other["engine"]: other for other in records} for records in rounds]
            peers = {"peer": peer, "ctranslate2": f"ctranslate2-{record.get('precision')}"}
            for column, other in peers.items():
                if speed in by_engine[0].get(other, ()):
                    ratios = [records[record["engine"]][speed] / records[other][speed] for records in by_engine]
                    row |= _spread(f"{work}_{column}", ratios)
            count = f"{work}_multiply_adds"
            if count in record and f"{work}_ratio" in row:
                row[f"{work}_ceiling"] = rounds[0][0][count] / record[count]
                row[f"{work}_share"] = row[f"{work}_ratio"] / row[f"{work}_ceiling"]
        rows.append(row)
    return pd.DataFrame(rows)


def _spread(name: str, ratios: Sequence[float]) -> dict[str, float]:
    return {name: statistics.median(ratios), f"{name}_low": min(ratios), f"{name}_high": max(ratios)}
