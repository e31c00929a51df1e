"""Findings: each has an answer or a reason; differences of any two systems, rows of files, rounds of benchmarks."""

import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, sem
from scipy.stats import t as student

from analyses.power import at_level, least_at_level
from core_models.settings import ConfigError, parse
from tests.workbench.papers.verdicts import decided
from workbench.papers import claims, ledger
from workbench.papers.experiment_differences import comparison_files, difference, former_default, stored_differences
from workbench.papers.findings import measured_findings, reported_findings
from workbench.papers.load import library
from workbench.papers.schema import Finding, Measurement, Paper
from workbench.store.runs import RunError

pytestmark = pytest.mark.long

BY_SEED = {"base": [50.0, 52.0, 51.0], "one": [53.0, 53.5, 52.0], "two": [51.0, 54.0, 50.0]}
ERRORS = {"one": 0.6, "two": 0.8}  # of the sentences, in each difference to the baseline


def half_width(values: list[float], error: float) -> float:
    of_seeds = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return math.hypot(of_seeds, norm.ppf(0.975) * error)


def minus(one: str, other: str) -> list[float]:
    return [a - b for a, b in zip(BY_SEED[one], BY_SEED[other], strict=True)]


@pytest.fixture
def experiment(tmp_path) -> Path:
    """The result files of three systems with three seeds each."""
    cells = [
        {"system": system, "seed": seed, "metric": "bleu", "test": "test", "score": score}
        for system, scores in BY_SEED.items()
        for seed, score in enumerate(scores, start=1)
    ]
    rows = []
    for system, error in ERRORS.items():
        deltas = minus(system, "base")
        center, half = float(np.mean(deltas)), half_width(deltas, error)
        rows.append(
            {"system": system, "baseline": "base", "metric": "bleu", "score": 0.0, "delta": center,
             "low": center - half, "high": center + half, "seeds": 3, "test": "test"}
        )  # fmt: skip
    pd.DataFrame(cells).to_csv(tmp_path / "mine.cells.csv", index=False)
    pd.DataFrame(rows).to_csv(tmp_path / "mine.comparisons.csv", index=False)
    return tmp_path / "mine.comparisons.csv"


def test_the_stored_difference_knows_the_error_of_its_seeds(experiment):
    found = {row["system"]: row for row in stored_differences(experiment)}
    for system in ERRORS:
        assert found[system]["seed_error"] == pytest.approx(sem(minus(system, "base")))


def test_two_systems_beside_the_same_baseline_are_paired_by_seed_with_the_errors_of_both(experiment):
    found = difference(experiment, "one", "two", "bleu", "test")
    deltas, error = minus("one", "two"), math.hypot(*ERRORS.values())
    assert found["delta"] == pytest.approx(np.mean(deltas))
    assert (found["high"] - found["low"]) / 2 == pytest.approx(half_width(deltas, error))
    assert found["seed_error"] == pytest.approx(sem(deltas))
    turned = difference(experiment, "two", "one", "bleu", "test")
    assert (turned["low"], turned["high"]) == pytest.approx((-found["high"], -found["low"]))
    beside = difference(experiment, "one", "base", "bleu", "test")
    assert beside["delta"] == pytest.approx(np.mean(minus("one", "base")))
    with pytest.raises(RunError, match="no difference of 'three' by bleu on test"):
        difference(experiment, "three", "two", "bleu", "test")


def test_a_stored_pair_is_the_difference_of_two_systems_in_either_order(experiment):
    """It is paired by sentence too, so it stands for what is made of two differences to the baseline."""
    deltas = minus("one", "two")
    pair = {"system": "one", "baseline": "two", "metric": "bleu", "score": 0.0, "seeds": 3, "test": "test"}
    pairs = pd.DataFrame([{**pair, "delta": np.mean(deltas), "low": -2.5, "high": 0.5}, {**pair, "test": "long"}])
    pairs.to_csv(experiment.with_name("mine.pairs.csv"), index=False)
    found, turned = (difference(experiment, *two, "bleu", "test") for two in (("one", "two"), ("two", "one")))
    assert (found["low"], found["high"], found["seed_error"]) == (-2.5, 0.5, pytest.approx(sem(deltas)))
    assert (turned["low"], turned["high"], turned["seed_error"]) == (-0.5, 2.5, found["seed_error"])
    assert (found["delta"], turned["delta"]) == (pytest.approx(np.mean(deltas)), -found["delta"])
    assert difference(experiment, "one", "base", "bleu", "test")["delta"] == pytest.approx(
        np.mean(minus("one", "base"))
    )


def test_fewer_seeds_average_less_of_the_error_of_the_sentences(experiment):
    """Of a system that has one seed, what is known of the other's sentences is of a mean over three."""
    for ending in ("cells", "comparisons"):
        file = experiment.with_name(f"mine.{ending}.csv")
        table = pd.read_csv(file)
        table = table[(table["system"] != "two") | (table.get("seed", 1) == 1)]
        two = table["system"] == "two"
        if ending == "comparisons":
            half = norm.ppf(0.975) * ERRORS["two"]
            delta = minus("two", "base")[0]
            table.loc[two, ["delta", "low", "high", "seeds"]] = [delta, delta - half, delta + half, 1]
        table.to_csv(file, index=False)
    found = difference(experiment, "one", "two", "bleu", "test")
    error = math.hypot(math.sqrt(3) * ERRORS["one"], ERRORS["two"])
    assert (found["seeds"], found["delta"]) == (1, pytest.approx(minus("one", "two")[0]))
    assert (found["high"] - found["low"]) / 2 == pytest.approx(norm.ppf(0.975) * error)


def answer(tmp_path, table: pd.DataFrame, value: str = "value", **measurement) -> dict:
    table.to_csv(tmp_path / "table.csv", index=False)
    finding = Finding(
        id="it", kind="property", what="It", where="Table 1", reported="1",
        ours=(Measurement(file="table", value=value, **measurement),),
    )  # fmt: skip
    paper = next(iter(library().values())).model_copy(update={"findings": (finding,)})
    (row,) = measured_findings(paper, tmp_path)
    return row


def test_rows_of_seeds_are_paired_and_keep_the_error_of_their_words(tmp_path):
    table = pd.DataFrame(
        [
            {"name": name, "seed": seed, "value": value, "low": value - 0.1, "high": value + 0.1}
            for name, values in {"a": [0.9, 0.8, 0.7], "b": [0.5, 0.6, 0.5]}.items()
            for seed, value in enumerate(values)
        ]
    )
    row = answer(tmp_path, table, where={"name": "a"}, minus=Decimal("0.5"))
    half = half_width([0.4, 0.3, 0.2], 0.1 / norm.ppf(0.975))
    assert [row[name] for name in ("gain", "low", "high", "seeds")] == pytest.approx([0.3, 0.3 - half, 0.3 + half, 3])
    row = answer(tmp_path, table, where={"name": "a"}, minus={"name": "b"})
    half = half_width([0.4, 0.2, 0.2], math.hypot(0.1, 0.1) / norm.ppf(0.975))
    assert [row["gain"], row["low"], row["high"]] == pytest.approx([0.8 / 3, 0.8 / 3 - half, 0.8 / 3 + half])
    turned = table.iloc[[0, 1, 2, 5, 4, 3]]
    assert answer(tmp_path, turned, where={"name": "a"}, minus={"name": "b"}) == row, "by seed, in whatever order"
    with pytest.raises(RunError, match="are no pairs"):
        answer(tmp_path, table.replace({"seed": {1: 7}}).iloc[[0, 1, 5, 3]], where={"name": "a"}, minus={"name": "b"})
    with pytest.raises(RunError, match="several rows of one seed"):
        answer(tmp_path, pd.concat([table, table]), where={"name": "a"}, minus=Decimal(0))
    of_rest = answer(tmp_path, table, where={"name": "a"}, minus={"name": "b"}, of_rest=True)
    shares = [100 * gain / lacking for gain, lacking in zip([0.4, 0.2, 0.2], [0.5, 0.4, 0.5], strict=True)]
    error = np.mean([100 * math.hypot(0.1, 0.1) / lacking for lacking in (0.5, 0.4, 0.5)]) / norm.ppf(0.975)
    assert of_rest["gain"] == pytest.approx(np.mean(shares))
    assert of_rest["high"] - of_rest["gain"] == pytest.approx(half_width(shares, error))
    with pytest.raises(RunError, match="there is no row of"):
        answer(tmp_path, table, where={"name": "c"})


def test_a_least_difference_has_the_groups_that_it_is_of(tmp_path):
    """Those of its system alone, in order, from which `least_at_level` is made."""
    groups = [("a", 0.0, 0.5, 0.3, 0.7, 0.01), ("b", 7.0, 0.6, 0.35, 0.85, 0.1), ("c", 9.0, 2.0, 1.9, 2.1, 0.01)]
    rows = pd.DataFrame(groups, columns=["bucket", "low_edge", "value", "low", "high", "seed_error"])
    least = {"bucket": "least but one", "low_edge": np.nan, "value": 0.6, "low": 0.3, "high": 0.9, "seed_error": np.nan}
    table = pd.concat([rows, pd.DataFrame([least])], ignore_index=True).assign(system="x", seeds=3)
    table = table.rename(columns={"value": "delta"})
    both = pd.concat([table, table.assign(system="y", delta=9.0)])
    found = answer(tmp_path, both, "delta", where={"system": "x", "bucket": "least but one"})
    with pytest.raises(RunError, match="with nothing subtracted"):
        answer(tmp_path, both, "delta", where={"system": "x", "bucket": "least but one"}, minus=Decimal(5))
    assert found["left_out"] == 1
    assert found["groups"] == tuple((value, low, high, error) for _, _, value, low, high, error in groups)
    lows = sorted(at_level(*group[:3], 3, group[3], 1 - 0.025 / 2)[0] for group in found["groups"])
    highs = sorted(at_level(*group[:3], 3, group[3], 1 - 0.025 / 3)[1] for group in found["groups"])
    assert least_at_level(found["groups"], 1, 3, 0.975) == (lows[1], highs[1])


def test_one_row_keeps_its_own_interval_and_rounds_have_their_range(tmp_path):
    table = pd.DataFrame({"name": ["a"], "value": [2.0], "low": [1.5], "high": [3.5], "seeds": [3]})
    row = answer(tmp_path, table, where={"name": "a"}, minus=Decimal(1))
    assert (row["gain"], row["low"], row["high"], row["seeds"]) == (1.0, 0.5, 2.5, 3)
    assert math.isnan(row["seed_error"])
    with_error = pd.concat([table, table.assign(name="b", value=1.0)]).assign(seed_error=0.2)
    assert answer(tmp_path, with_error, where={"name": "a"}, minus=Decimal(1))["seed_error"] == 0.2
    of_both = answer(tmp_path, with_error, where={"name": "a"}, minus={"name": "b"})
    assert math.isnan(of_both["seed_error"]), "the error between seeds of a difference is not that of one of its rows"
    with pytest.raises(RunError, match="no seeds that tell them apart"):
        answer(tmp_path, with_error.assign(name="a"), where={"name": "a"})
    rounds = pd.DataFrame({"name": ["a"] * 3, "value": [0.7, 0.6, 0.8]})
    row = answer(tmp_path, rounds, where={"name": "a"}, rows="rounds")
    assert (row["gain"], row["low"], row["high"], row["seeds"]) == pytest.approx((0.7, 0.6, 0.8, 3))
    assert row["repeat"] == "measurement"
    medians = rounds.assign(value_low=[0.5, 0.6, math.nan], value_high=[0.7, 1.0, math.nan], rounds=[3, 2, 1])
    row = answer(tmp_path, medians, where={"name": "a"}, rows="rounds")
    assert (row["gain"], row["low"], row["high"], row["seeds"]) == pytest.approx((0.7, 0.5, 1.0, 6))
    with pytest.raises(ValueError, match="nothing is subtracted"):
        answer(tmp_path, medians, where={"name": "a"}, rows="rounds", minus=Decimal("0.1"))


def test_what_is_reported_may_be_the_number_of_another_paper():
    finding = Finding(
        id="it", kind="order", what="It", where="here", without="not tried",
        reported="[zheng-2019:table-1/gdr/average] - [zheng-2019:table-1/transformer/average]",
    )  # fmt: skip
    paper = library()["dou-2019"].model_copy(update={"findings": (finding,)})
    (row,) = reported_findings(paper)
    table = library()["zheng-2019"].tables[0]
    assert row["gain"] == pytest.approx(float(table.value("gdr", "average") - table.value("transformer", "average")))


@pytest.mark.parametrize("name", list(library()))
@pytest.mark.slow
def test_every_finding_is_answered_or_says_why_not_and_every_verdict_follows(name):
    paper = library()[name]
    reported, measured = claims.reported_claims(paper), claims.measured_claims(paper)
    findings = {f"finding/{finding.id}": finding for finding in paper.findings}
    assert findings, "each paper has findings"
    table = ledger.claim_table(reported, measured)
    assert len(table) == reported["claim"].nunique()
    for claim, finding in findings.items():
        rows = measured[measured["claim"] == claim]
        assert len(rows) == len(finding.ours)
        (line,) = table[table["claim"] == finding.what].itertuples()
        if finding.without:
            assert (line.verdict, line.ours) == (claims.NOT_TRIED, finding.without)
        gain = next(row["gain"] for row in reported_findings(paper) if row["claim"] == claim)
        for row in rows.itertuples():
            assert row.verdict == decided(row, measured, gain, finding.share)
    counts = ledger.verdict_counts(table)
    assert counts["all"].sum() == len(table)
    assert (counts["single"] <= counts["all"]).all()


def test_orders_of_the_project_are_those_of_its_experiments():
    """EM routing above dynamic routing, from the cells as they stand there."""
    files = {path.name: path for path in comparison_files()}
    found = difference(files["claims-layers.comparisons.csv"], "em-routing", "dynamic-routing", "bleu", "test")
    cells = pd.read_csv(files["claims-layers.comparisons.csv"].with_name("claims-layers.cells.csv"))
    scores = cells[(cells["metric"] == "bleu") & (cells["test"] == "test")].pivot(
        index="seed", columns="system", values="score"
    )
    assert found["delta"] == pytest.approx((scores["em-routing"] - scores["dynamic-routing"]).mean())
    assert found["seeds"] == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"without": "no time"}, "name what of ours answers it"),
        ({"ours": []}, "name what of ours answers it"),
        ({"ours": [{"experiment": "a", "file": "b", "value": "c"}]}, "either an experiment or a file"),
        ({"ours": [{"experiment": "a", "system": "b"}]}, "name the system and its baseline"),
        ({"ours": [{"file": "a"}]}, "name the column"),
    ],
)
def test_a_finding_names_one_answer_or_a_reason(change, message):
    entry = {"id": "it", "kind": "order", "what": "It", "where": "Table 1", "reported": "1",
             "ours": [{"file": "a", "value": "b"}]}  # fmt: skip
    parse(Finding, entry)
    with pytest.raises(ConfigError, match=message):
        parse(Finding, {**entry, **change})


def test_a_paper_without_findings_has_its_gains_alone():
    paper: Paper = library()["dou-2019"].model_copy(update={"findings": ()})
    assert set(claims.reported_claims(paper)["kind"]) == {"gain"}
    assert set(claims.measured_claims(paper)["claim"]) <= set(claims.reported_gains(paper)["claim"])


def test_results_of_former_defaults_say_so():
    measured = claims.measured_claims(library()["dou-2019"])
    notes = measured.groupby("data")["note"].unique().map(list)
    assert notes["controlled-routing"] == ["scale=none"]
    assert notes["claims-layers"] == [""]
    table = ledger.claim_table(claims.reported_claims(library()["dou-2019"]), measured)
    (ours,) = table.loc[table["claim"] == "EM routing: three iterations are better than two", "ours"]
    assert "controlled-routing, scale=none, test" in ours
    linear = [former_default("controlled-routing", system) for system in ("transformer:preset=demo", "em-routing")]
    assert linear == ["", "scale=none"]
