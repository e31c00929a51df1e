"""Cost of systems by sentence length: tables of `workbench benchmark speed --lengths` in data/experiments/results.

A row of such a table is a system at one length; speeds are relative to the first system, at the same length. Knows
tables, no figure.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from core_models.resources import data_folder
from core_models.settings import nearest
from workbench.store.runs import RunError

if TYPE_CHECKING:
    import pandas as pd

_PRESET = re.compile(r"[:,]preset=\w+(?=$| )")
_COLUMNS = {"system", "length", "train_tokens_per_second", "decode_sentences_per_second"}
_WORKS = {"train": "training", "decode": "decoding"}


def length_benches(folder: Path | None = None) -> list[str]:
    """The tables of `workbench benchmark speed --lengths` that are at hand."""
    import pandas as pd

    found = sorted((folder or data_folder() / "experiments" / "results").glob("*.csv"))
    return [path.stem for path in found if set(pd.read_csv(path, nrows=0)) >= _COLUMNS]


def without_preset(engine: str) -> str:
    """What a table calls an engine, without the preset that all of them have."""
    return _PRESET.sub("", engine)


def length_costs(name: str, folder: Path | None = None) -> tuple[pd.DataFrame, str]:
    """system, length (words), work (training, decoding), milliseconds (of a sentence), ratio and ceiling (to the first
    system, at this length); and that system. Raises RunError where there is no such table.

    A sentence of n words is n + 1 target tokens in training, with its end, and n in decoding.
    """
    import pandas as pd

    known = length_benches(folder)
    if name not in known:
        if not known:
            raise RunError(
                "there is no table of speeds by length; measure: workbench benchmark speed transformer gdr --lengths "
                "10,20,50,100 --csv data/experiments/results/length-cost-cpu.csv"
            )
        raise RunError(f"there is no table {name!r} of workbench benchmark speed --lengths; {nearest(name, known)}")
    table = pd.read_csv((folder or data_folder() / "experiments" / "results") / f"{name}.csv")
    seconds = {
        "train": (table["length"] + 1) / table["train_tokens_per_second"],
        "decode": 1 / table["decode_sentences_per_second"],
    }
    parts = [
        pd.DataFrame(
            {
                "system": table["engine"].map(without_preset),
                "length": table["length"],
                "work": said,
                "milliseconds": 1000 * seconds[work],
                "ratio": table[f"{work}_ratio"],
                "ceiling": table[f"{work}_ceiling"],
            }
        )
        for work, said in _WORKS.items()
    ]
    whole = pd.concat(parts, ignore_index=True)
    return whole, str(whole["system"].iloc[0])
