"""The claims of a paper: what it reports, what our experiments say, and a verdict that is computed.

Most claims are gains: a row of a system with a printed score, against the plain backbone above it in the same table.
Ours are the differences of experiments in which the two differ by nothing else, with 95% intervals. Orders of systems,
curves, properties and costs are the file's findings (`findings`). Knows the papers' tables and result files; trains and
draws nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.evaluation.scoring import METRIC_NAMES
from workbench.papers.experiment_differences import (
    COMPARISONS,
    comparison_files,
    former_default,
    stored_differences,
    uncounted,
)
from workbench.papers.findings import REPEATED_TRAINING, measured_findings, reported_findings
from workbench.papers.learning_rates import better_rate
from workbench.papers.our_results import experiment_systems
from workbench.papers.presets import parts_of, rows_of, settings_of, shared_settings
from workbench.papers.records import records
from workbench.papers.schema import LEAST_SHARES, Paper, Row, Table, printed_name

if TYPE_CHECKING:
    import pandas as pd

BACKBONES = ("transformer", "rnnsearch")
METRIC = "bleu"  # of the gains: no paper prints another of our metrics
HOLDS, REFUTED, UNDECIDED, MIXED, NOT_TRIED = "holds", "refuted here", "undecided", "differs by data", "not tried here"
VERDICTS = (HOLDS, REFUTED, UNDECIDED, MIXED, NOT_TRIED)
SHARE = LEAST_SHARES["gain"]
MINIMUM_BLEU = 10.0  # below it a system did not train or the test set is out of reach: a difference says nothing
SPEED_TOLERANCE = 0.1  # relative; so far a second measurement of a speed may lie (docs/benchmarks/speed-cpu.md)
ROUNDING = 0.05  # points: what is printed as so little worse is not called worse
# says: the claim in words; base: of a gain, the plain model; share: the least share of the gain that must be possible;
# printed: what is printed, where it is no number; without: why nothing of ours answers it.
REPORTED = ["claim", "kind", "says", "label", "base", "measure", "gain", "share", "printed", "without", "table", "data"]
# note: of the setting; repeat: what is repeated, a training (seeds) or a measurement of speed; tuned: False where
# another learning rate is known to be better; low, high: at 95 %; seed_error: the standard error of the mean between
# seeds, NaN if it is not known; decisive_low, decisive_high: the interval that the verdict is made from;
# smallest: the smallest difference that could have decided, NaN of a speed and of a least difference.
# groups, left_out: of a least difference, those of all groups, and how many lower ones do not count.
VERDICT_COLUMNS = ["decisive_low", "decisive_high", "verdict", "smallest"]
MEASURED = [
    *("claim", "measure", "data", "note", "test", "repeat", "seeds", "tuned", "gain", "low", "high", "seed_error"),
    *("groups", "left_out"),
    *VERDICT_COLUMNS,
]


def reported_claims(paper: Paper) -> pd.DataFrame:
    """Every reported gain and finding: columns `REPORTED`."""
    import pandas as pd

    findings = pd.DataFrame(reported_findings(paper), columns=REPORTED)
    parts = [part for part in (reported_gains(paper), findings) if not part.empty]
    return pd.concat(parts, ignore_index=True) if parts else findings


def measured_claims(paper: Paper, results: Path | None = None) -> pd.DataFrame:
    """What our experiments (by default the project's) say of a paper's claims: columns `MEASURED`.

    Raises RunError for a file that is no comparison of an experiment, or lacks what a finding names.
    """
    import pandas as pd

    expected = {row["claim"]: (float(row["gain"]), float(row["share"])) for row in reported_findings(paper)}
    findings = with_verdicts(pd.DataFrame(measured_findings(paper, results), columns=MEASURED), expected)
    parts = [part for part in (measured_gains(paper, results), findings) if not part.empty]
    return pd.concat(parts, ignore_index=True) if parts else findings


def with_verdicts(measured: pd.DataFrame, expected: Mapping[str, tuple[float, float]]) -> pd.DataFrame:
    """The rows with VERDICT_COLUMNS; expected, by claim: the reported gain and the share of it that must be possible.

    Where several differences count for a claim, each decides at 1 - 0.05 / their number (Bonferroni), so that more
    experiments do not make a verdict more likely by chance. A speed that was measured once decides with a tenth either
    way.
    """
    import pandas as pd

    from analyses.power import at_level, detectable_difference, least_at_level

    levels = {claim: level(counting(rows)) for claim, rows in measured.groupby("claim")}
    found: list[tuple[float, float, str, float]] = []
    for row in records(measured):
        (gain, share), low, high = expected[row["claim"]], row["low"], row["high"]
        confidence = levels[row["claim"]]
        if row.get("groups"):
            interval = least_at_level(row["groups"], row["left_out"], int(row["seeds"]), confidence)
            found.append((*interval, verdict(*interval, gain, share), math.nan))
        elif row["repeat"] == REPEATED_TRAINING:
            of_seeds = (int(row["seeds"]), row["seed_error"], confidence)
            interval = at_level(row["gain"], low, high, *of_seeds)
            no_gain = row["measure"] == METRIC and -ROUNDING < gain <= 0
            decided = verdict_of_no_gain(*interval) if no_gain else verdict(*interval, gain, share)
            found.append((*interval, decided, detectable_difference(low, high, *of_seeds)))
        else:
            tolerance = SPEED_TOLERANCE if row["seeds"] == 1 else 0.0
            low, high = (1 - tolerance) * low, (1 + tolerance) * high
            found.append((low, high, verdict_of_speeds(low, high, gain, share), math.nan))
    return measured.assign(**pd.DataFrame(found, columns=VERDICT_COLUMNS, index=measured.index))


def level(counted: pd.DataFrame) -> float:
    """The confidence level of the intervals that decide, where these differences count for a claim."""
    return 1 - 0.05 / len(counted)


def reported_gains(paper: Paper) -> pd.DataFrame:
    """Every reported gain over a plain backbone: columns `REPORTED`, gain in points, above 0 if better.

    Rows of the same system, settings and measure are one claim, whichever table they are in.
    """
    import pandas as pd

    rows = [
        {
            "claim": _key(row, base, str(column.measure)),
            "kind": "gain",
            "says": "",
            "label": _label(row),
            "base": base.label,
            "measure": column.measure,
            "gain": float(row.values[column.key] - base.values[column.key]),
            "share": SHARE,
            "printed": "",
            "without": "",
            "table": printed_name(table.id),
            "data": column.label if len(table.columns) > 1 else table.data,
        }
        for table, row, base in _pairs(paper)
        for column in table.columns
        if column.measure == METRIC and column.key in row.values and column.key in base.values
    ]
    gains = pd.DataFrame(rows, columns=REPORTED)
    expected = gains["claim"].map(expected_gains(gains))
    relation = expected.map(lambda gain: "better" if gain > 0 else "no better" if gain > -ROUNDING else "worse")
    return gains.assign(says=gains["label"] + ": " + relation + f" {METRIC_NAMES[METRIC]} than " + gains["base"])


def measured_gains(paper: Paper, results: Path | None = None) -> pd.DataFrame:
    """The differences of our experiments (by default the project's) for the gains of a paper: columns `MEASURED`.

    Raises RunError for a file that is no comparison of an experiment.
    """
    import pandas as pd

    reported = expected_gains(reported_gains(paper))
    pairs = list(_pairs(paper))
    found: list[dict[str, Any]] = []
    for path in comparison_files(results):
        name = path.name.removesuffix(COMPARISONS)
        grid = path.parents[1] / f"{name}.yaml"
        systems, _ = experiment_systems(grid)
        for record in stored_differences(path):
            if record["metric"] != METRIC or uncounted(name, record["system"]):
                continue
            if not {record["system"], record["baseline"]} <= systems.keys():
                continue
            if min(record["score"], record["score"] - record["delta"]) < MINIMUM_BLEU:
                continue
            system, baseline = systems[record["system"]], systems[record["baseline"]]
            for claim in _claims(pairs, system, baseline, record["metric"]):
                if claim in reported.index:
                    gain = _measured(claim, name, record)
                    gain["note"] = former_default(name, system, baseline)
                    gain["tuned"] = better_rate(grid, record["system"], record["baseline"]) is None
                    found.append(gain)
    measured = pd.DataFrame(found, columns=MEASURED)
    return with_verdicts(measured, {str(claim): (float(gain), SHARE) for claim, gain in reported.items()})


def expected_gains(reported: pd.DataFrame) -> pd.Series:
    """The reported gain of each claim: of tables with an average that average, else the mean of the columns.

    A gain that a later table prints again counts once.
    """
    averages = reported["data"].str.contains(r"\b(?:average|avg)\b", case=False)
    has_average = averages.groupby([reported["claim"], reported["table"]]).transform("any")
    counted = reported[averages | ~has_average]
    first_table = counted.groupby(["claim", counted["gain"].round(6)])["table"].transform("first")
    return counted[counted["table"] == first_table].groupby("claim")["gain"].mean()


def _label(row: Row) -> str:
    """A row as it is printed, with the settings that ours has it with, but for a printed size, which labels say."""
    if row.settings_here:
        return f"{row.label} (ours: {row.settings_here})"
    return row.label if not row.settings or "preset=" in row.settings else f"{row.label} ({row.settings})"


def _pairs(paper: Paper) -> Iterator[tuple[Table, Row, Row]]:
    """The rows of the paper's own systems, each with the plain backbone that it is compared with."""
    for table in paper.tables:
        for place, row in enumerate(table.rows):
            base = next((other for other in reversed(table.rows[:place]) if _is_base(other, row)), None)
            is_own = row.system not in ("", *BACKBONES) and not row.cited and row.iteration is None
            if is_own and base is not None:
                yield table, row, base


def _is_base(row: Row, of: Row) -> bool:
    """Return True for a plain backbone that has no setting but those of the compared row."""
    return row.system in BACKBONES and not row.cited and parts_of(row.settings) <= parts_of(of.settings)


def _key(row: Row, base: Row, measure: str) -> str:
    systems = (":".join(filter(None, (one.system, one.settings))) for one in (row, base))
    return f"{' over '.join(systems)}, {measure}"


def _claims(pairs: Iterable[tuple[Table, Row, Row]], system: str, baseline: str, measure: str) -> set[str]:
    """The claims that a difference of two systems is about: they differ in what the rows say and in nothing else.

    Of rows of several tables those count that share most settings with the system, so a big model is no base one.
    """
    settings = settings_of(system)
    differs = settings - settings_of(baseline)
    if settings_of(baseline) - settings:
        return set()
    found = {
        _key(row, base, measure): shared_settings(row, settings) or 0
        for table, row, base in pairs
        if differs <= parts_of(row.settings) and row in rows_of(table, system) and base in rows_of(table, baseline)
    }
    return {claim for claim, shared in found.items() if shared == max(found.values())}


def _measured(claim: str, data: str, record: dict[str, Any]) -> dict[str, Any]:
    return {
        "claim": claim,
        "measure": record["metric"],
        "data": data,
        "test": str(record["test"]),
        "repeat": REPEATED_TRAINING,
        "seeds": int(record["seeds"]),
        "gain": float(record["delta"]),
        "low": record["low"],
        "high": record["high"],
        "seed_error": float(record["seed_error"]),
        "groups": (),
        "left_out": 0,
    }


def verdict(low: float, high: float, reported: float, share: float = SHARE) -> str:
    """What the interval of our gain says of a reported one, above 0 or below.

    It holds if the interval is on the reported side of zero and has a share of the reported gain in it, or passes it.
    It is refuted here if the interval leaves out that share and more. Else it is undecided.
    """
    if reported < 0:
        low, high, reported = -high, -low, -reported
    if high < share * reported:
        return REFUTED
    return HOLDS if low > 0 else UNDECIDED


def verdict_of_no_gain(low: float, high: float) -> str:
    """What the interval of our gain in points says where no gain is printed (`ROUNDING`)."""
    return REFUTED if low > 0 else HOLDS if high < ROUNDING else UNDECIDED


def verdict_of_speeds(low: float, high: float, reported: float, share: float) -> str:
    """What the range of measurements says of a reported speed: it holds if all of it reaches a share of it."""
    return HOLDS if low >= share * reported else REFUTED if high < share * reported else UNDECIDED


def overall(measured: pd.DataFrame) -> str:
    """The verdict of a claim over all data sets (rows of `measured_claims`): that of those that decide, if they agree.

    One training says little of a system, so it counts only where no data set has several seeds, and is said. What was
    trained at a rate that is known not to be the best counts only where there is nothing else.
    """
    if measured.empty:
        return NOT_TRIED
    counted = counting(measured)
    decided = set(counted["verdict"]) - {UNDECIDED}
    found = UNDECIDED if not decided else MIXED if len(decided) > 1 else decided.pop()
    return found if counted["seeds"].max() > 1 else f"{found} (one {counted['repeat'].iloc[0]})"


def counting(measured: pd.DataFrame) -> pd.DataFrame:
    """The differences that count for the verdict: at the best known rate, if any are; of those, over several seeds."""
    tuned = measured[measured["tuned"].astype(bool)]
    candidates = measured if tuned.empty else tuned
    several = candidates[candidates["seeds"] > 1]
    return candidates if several.empty else several
