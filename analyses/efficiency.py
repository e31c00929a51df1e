"""What systems and engines cost: medians over rounds of measurements, ratios, and the ceilings of multiply-adds.

A machine's speed drifts by more than engines differ, so ratios are taken within a round before their median is. Does
not measure anything (`workbench.benchmark` does).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

SPEEDS = ("train_tokens_per_second", "decode_sentences_per_second")
Record = Mapping[str, Any]


def table(rounds: Sequence[Sequence[Record]], peer: str = "marian") -> pd.DataFrame:
    """A row an engine: medians over rounds; ratios to the first engine and to `peer`, and the multiply-adds' ceiling.

    Columns for train and decode each: the speed; `ratio`, to the first engine; `ceiling`, the first engine's
    multiply-adds over this one's, what the ratio could be at best; `share`, ratio over ceiling; `peer`, to the peer.
    rounds: the same engines in each, in one order. Raises ValueError where they are not, or where there are none.
    """
    names = [[record["engine"] for record in one] for one in rounds]
    if not rounds or any(one != names[0] or len(set(one)) < len(one) for one in names):
        raise ValueError(f"Every round measures the same engines, each once; these measured {names}.")
    rows = []
    for place, record in enumerate(rounds[0]):
        row = {key: value for key, value in record.items() if key not in SPEEDS}
        for speed in SPEEDS:
            if speed not in record:
                continue
            work = speed.partition("_")[0]
            row[speed] = statistics.median(one[place][speed] for one in rounds)
            if speed in rounds[0][0]:  # the first engine may only decode
                row[f"{work}_ratio"] = statistics.median(one[place][speed] / one[0][speed] for one in rounds)
            known = [{other["engine"]: other for other in one} for one in rounds]
            if speed in known[0].get(peer, ()):
                row[f"{work}_peer"] = statistics.median(
                    one[record["engine"]][speed] / one[peer][speed] for one in known
                )
            count = f"{work}_multiply_adds"
            if count in record and f"{work}_ratio" in row:
                row[f"{work}_ceiling"] = rounds[0][0][count] / record[count]
                row[f"{work}_share"] = row[f"{work}_ratio"] / row[f"{work}_ceiling"]
        rows.append(row)
    return pd.DataFrame(rows)
