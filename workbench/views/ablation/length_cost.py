"""Cost of systems by sentence length: tables of `workbench benchmark speed --lengths` in data/experiments/results.

A row of such a table is a system at one length; speeds are relative to the first system at the same length.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from core_models.settings import nearest
from workbench.papers.experiment_differences import results_folder
from workbench.store.runs import RunError

if TYPE_CHECKING:
    import pandas as pd

_PRESET = re.compile(r"[:,]preset=\w+(?=$| )")
_COLUMNS = {"system", "length", "train_tokens_per_second", "decode_sentences_per_second"}
_WORKS = {"train": "training", "decode": "decoding"}


def length_benches(folder: Path | None = None) -> list[str]:
    """Names of the existing tables of `workbench benchmark speed --lengths`."""
    import pandas as pd

    paths = sorted((folder or results_folder()).glob("*.csv"))
    return [path.stem for path in paths if set(pd.read_csv(path, nrows=0)) >= _COLUMNS]


def without_preset(engine: str) -> str:
    """Name of an engine without the preset, which all engines share."""
    return _PRESET.sub("", engine)


def length_costs(name: str, folder: Path | None = None) -> tuple[pd.DataFrame, str]:
    """Costs by sentence length, and the name of the first system; raises RunError if there is no such table.

    Columns: system, length (words), work (training, decoding), milliseconds (of a sentence), ratio and ceiling (to the
    first system at this length). A sentence of n words has n + 1 target tokens in training (with </s>) and n in
    decoding.
    """
    import pandas as pd

    benches = length_benches(folder)
    if name not in benches:
        if not benches:
            raise RunError(
                "there is no table of speeds by length; measure: workbench benchmark speed transformer gdr --lengths "
                "10,20,50,100 --csv data/experiments/results/length-cost-cpu.csv"
            )
        raise RunError(f"there is no table {name!r} of workbench benchmark speed --lengths; {nearest(name, benches)}")
    table = pd.read_csv((folder or results_folder()) / f"{name}.csv")
    seconds = {
        "train": (table["length"] + 1) / table["train_tokens_per_second"],
        "decode": 1 / table["decode_sentences_per_second"],
    }
    parts = [
        pd.DataFrame(
            {
                "system": table["engine"].map(without_preset),
                "length": table["length"],
                "work": label,
                "milliseconds": 1000 * seconds[work],
                "ratio": table[f"{work}_ratio"],
                "ceiling": table[f"{work}_ceiling"],
            }
        )
        for work, label in _WORKS.items()
    ]
    costs = pd.concat(parts, ignore_index=True)
    return costs, str(costs["system"].iloc[0])
