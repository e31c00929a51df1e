"""Figure of quality and search errors by beam size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.figures.options import FigureOptions
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.plotting.texts import by_system
from workbench.store.runs import short_names
from workbench.views.beam_size.measure import read_all

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure


def sizes_table(request: Request) -> pd.DataFrame:
    """Measured results, one row for each run and beam size.

    Columns: system, size, bleu, low, high, length_ratio, empty, empty_percent, errors, error_percent, error_low,
    error_high (percent), n, seconds, signature.
    """
    import pandas as pd

    names = short_names(request.runs)
    results = read_all(request.runs, request.test)
    tables = [pd.DataFrame(result["sizes"]).assign(system=names[run]) for run, result in results.items()]
    table = pd.concat(tables, ignore_index=True)
    rates = {name: table[name].astype(float) * 100 for name in ("error_rate", "error_low", "error_high")}
    table = table.assign(empty_percent=100 * table["empty"] / table["n"], **rates)
    table = table.rename(columns={"error_rate": "error_percent"})
    return table[["system", *(name for name in table if name != "system")]]


@figure("beam-sizes", scope="test_set")
def _beam_sizes(request: Request, options: FigureOptions) -> Figure:
    """BLEU, length, empty outputs and search errors of each run by beam size."""
    from workbench.views.beam_size.plots import beam_sizes

    names = short_names(request.runs)
    descriptions = {
        names[run]: f"length penalty {result['length_penalty']:g}, {result['decided']} of {result['short']} short "
        f"sentences decided (at most {result['short_words']} words, {result['most_nodes']} nodes each), in "
        f"{result['best_is_empty']} of them the empty output is the most probable"
        for run, result in read_all(request.runs, request.test).items()
    }
    caption = (
        "BLEU with 95% intervals, output words by reference words and empty outputs, on the whole test set; search "
        "errors, against exact search without a length penalty (Stahlberg and Byrne 2019), on short sentences. "
        f"Searches: {by_system(descriptions)}."
    )
    table = sizes_table(request)
    figure = beam_sizes(table, caption, styles(request))
    return replace(figure, provenance={**figure.provenance, "signatures": {"BLEU": table["signature"].iloc[0]}})
