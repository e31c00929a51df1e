"""The ledger of a paper: its claims in words, a row each with what is reported, ours and the verdict.

Makes texts of what `claims` has computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workbench.papers import claims
from workbench.papers.findings import REPEATED_TRAINING
from workbench.papers.records import records

if TYPE_CHECKING:
    import pandas as pd

WITHOUT_SIGN = ("ratio", "share")  # measures that are no difference
DIGITS = {"length ratio": 4}  # behind the point; of other measures two


def claim_table(reported: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """The ledger, one row a claim, in words.

    Columns: claim, kind, reported (by table), ours (what counts), level (of its intervals; "" without any), verdict,
    smallest (if undecided, the smallest difference that an experiment could have shown).
    """
    import pandas as pd

    rows = []
    for claim, gains in reported.groupby("claim", sort=False):
        first, mine = gains.iloc[0], measured[measured["claim"] == claim]
        found = claims.overall(mine)
        counted = claims.counting(mine)
        could = counted["smallest"].min() if found.startswith(claims.UNDECIDED) else float("nan")
        rows.append(
            {
                "claim": first["says"],
                "kind": first["kind"],
                "reported": "; ".join(_gains_in_words(gains)) + _taken_as(gains),
                "ours": "; ".join(_ours_in_words(mine)) or first["without"],
                "level": f"{100 * claims.level(counted):.4g}%" if REPEATED_TRAINING in set(counted["repeat"]) else "",
                "verdict": found,
                "smallest": "" if pd.isna(could) else _number(could, str(first["measure"])).removeprefix("+"),
            }
        )
    return pd.DataFrame(rows, columns=["claim", "kind", "reported", "ours", "level", "verdict", "smallest"])


def verdict_counts(table: pd.DataFrame) -> pd.DataFrame:
    """How many rows of `claim_table` have each verdict of `claims.VERDICTS`: all, and single, those not repeated.

    Index: the verdict.
    """
    import pandas as pd

    single = table["verdict"].str.endswith(")")
    plain = table["verdict"].str.partition(" (")[0]
    counts = {"all": plain.value_counts(), "single": plain[single].value_counts()}
    return pd.DataFrame(counts).reindex(list(claims.VERDICTS)).fillna(0).astype(int)


def _taken_as(gains: pd.DataFrame) -> str:
    """Which gain the verdict is made from, where several are reported."""
    if gains["gain"].nunique() == 1:
        return ""
    (expected,) = claims.expected_gains(gains)
    return f"; taken as {_number(expected, str(gains['measure'].iloc[0]))}"


def _gains_in_words(gains: pd.DataFrame) -> Iterator[str]:
    """The reported gains table by table, as a range where there are several."""
    for table, part in gains.groupby("table", sort=False):
        low, high = (_number(gain, part["measure"].iloc[0]) for gain in (part["gain"].min(), part["gain"].max()))
        shown = low if low == high else f"{low} to {high}"
        yield f"{part['printed'].iloc[0] or shown} ({table})"


def _ours_in_words(measured: pd.DataFrame) -> Iterator[str]:
    """Our differences that count, with the intervals that decide, and how many more there are."""
    counted = claims.counting(measured)
    yield from map(_gain_in_words, records(counted))
    others = measured.drop(counted.index)
    # Where no rate is the best known one, what is left out lacks other seeds.
    untuned = ~others["tuned"].astype(bool) & bool(counted["tuned"].astype(bool).any())
    if not untuned.all():
        yield f"and {(~untuned).sum()} of one {measured['repeat'].iloc[0]}"
    if untuned.any():
        yield f"and {untuned.sum()} at a rate with a higher dev loss"
    if len(counted) and not counted["tuned"].astype(bool).any():
        yield "all at a rate with a higher dev loss"


def _gain_in_words(record: dict[str, Any]) -> str:
    count, repeat = record["seeds"], {REPEATED_TRAINING: "seed"}.get(record["repeat"], record["repeat"])
    repeats = f"{count} {repeat}{'s' * (count > 1)}"
    where = ", ".join(filter(None, (record["data"], record["note"], record["test"], repeats)))
    gain, low, high = (_number(record[name], record["measure"]) for name in ("gain", "decisive_low", "decisive_high"))
    return f"{gain} [{low}, {high}] {where}"


def _number(value: float, measure: str) -> str:
    """A number with the digits of its measure; differences have a sign, minus being as wide as plus."""
    digits = DIGITS.get(measure, 2)
    return f"{value:.{digits}f}" if measure in WITHOUT_SIGN else f"{value:+.{digits}f}".replace("-", "−")
