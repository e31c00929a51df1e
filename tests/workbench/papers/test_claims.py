"""The claims of a paper: reported gains by subtraction, ours from experiments, verdicts from intervals."""

import math

import pandas as pd
import pytest
from scipy.stats import norm

from tests.workbench.papers.verdicts import decided
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.papers import claims, ledger
from workbench.papers.experiment_differences import comparison_files
from workbench.papers.load import library
from workbench.papers.our_results import experiment_systems
from workbench.papers.schema import Table
from workbench.plotting.grammar import Points
from workbench.store.runs import RunError

pytestmark = pytest.mark.long


def test_reported_gains_are_differences_to_the_plain_model_above():
    gains = claims.reported_gains(library()["dou-2019"])
    of_table = gains[gains["table"] == "Table 1"].set_index("claim")["gain"]
    assert of_table.round(2).to_dict() == {
        "linear-combination:form=matrix_dense over transformer, bleu": 0.42,
        "dynamic-combination over transformer, bleu": 1.02,
        "dynamic-routing over transformer, bleu": 0.91,
        "em-routing over transformer, bleu": 1.5,
    }
    big = gains[gains["claim"] == "em-routing:preset=big over transformer:preset=big, bleu"]
    assert big["gain"].round(2).tolist() == [0.39, 0.44], "over the big model above it"


def test_a_table_with_an_average_counts_by_it_alone():
    """Zheng 2019, Table 1: neither the dev set nor single test sets beside their average."""
    expected = claims.expected_gains(claims.reported_gains(library()["zheng-2019"]))
    assert expected["gdr-rnn over rnnsearch, bleu"] == pytest.approx(1.84)
    linear = claims.expected_gains(claims.reported_gains(library()["dou-2019"]))
    assert linear["em-routing over transformer, bleu"] == pytest.approx((1.5 + 0.68 + 0.78) / 3)


def test_the_words_of_a_claim_follow_what_its_gains_are_taken_as():
    """Better on the dev set and in their plain mean, but not on the average of the test sets, which alone counts."""
    table = Table(
        id="table-1",
        what="scores",
        columns=[
            {"key": key, "label": label, "measure": "bleu"} for key, label in (("dev", "Dev"), ("tests", "Average"))
        ],
        row=[
            {"key": "base", "label": "Base", "system": "transformer", "values": {"dev": 30, "tests": 30}},
            {"key": "ours", "label": "Ours", "system": "em-routing", "values": {"dev": 33, "tests": 29}},
        ],
    )
    gains = claims.reported_gains(library()["dou-2019"].model_copy(update={"tables": (table,)}))
    assert sorted(gains["gain"]) == [-1.0, 3.0]
    assert set(gains["says"]) == {"Ours: worse BLEU than Base"}


@pytest.mark.parametrize("name", list(library()))
def test_ours_are_the_differences_of_the_experiments_against_the_claimed_baseline_and_nothing_else(name):
    paper = library()[name]
    measured = claims.measured_gains(paper)
    assert set(measured["claim"]) <= set(claims.reported_gains(paper)["claim"])
    assert not measured.duplicated(["claim", "data", "test"]).any()
    files = {path.name.removesuffix(".comparisons.csv"): path for path in comparison_files()}
    reported = claims.expected_gains(claims.reported_gains(paper))
    for row in measured.itertuples():
        path = files[row.data]
        systems, _ = experiment_systems(path.parents[1] / f"{row.data}.yaml")
        stored = pd.read_csv(path)
        stored = stored[(stored["metric"] == row.measure) & (stored["seeds"] == row.seeds)].dropna(subset=["low"])
        assert row.verdict == decided(row, measured, reported[row.claim], claims.SHARE)
        (found,) = [
            line
            for line in stored.itertuples()
            if line.delta == row.gain
            and getattr(line, "test", "test") == row.test
            and systems[line.system].startswith(row.claim.partition(" over ")[0].partition(":")[0])
        ]
        system, _, base = row.claim.rpartition(",")[0].partition(" over ")
        assert systems[found.system].startswith(system.partition(":")[0])
        assert systems[found.baseline].startswith(base.partition(":")[0])
        assert row.low <= row.gain <= row.high
        assert row.seeds == max(stored.loc[(stored["system"] == found.system), "seeds"])


@pytest.mark.parametrize(
    ("low", "high", "reported", "share", "wanted"),
    [
        (0.1, 2.0, 1.0, 0.5, claims.HOLDS),
        (0.1, 0.6, 1.0, 0.5, claims.HOLDS),
        (0.1, 0.4, 1.0, 0.5, claims.REFUTED),  # a gain, but less than half of the reported one
        (1.1, 2.0, 1.0, 0.5, claims.HOLDS),
        (-2.0, -0.1, 1.0, 0.5, claims.REFUTED),
        (-2.0, 0.4, 1.0, 0.5, claims.REFUTED),
        (-0.1, 2.0, 1.0, 0.5, claims.UNDECIDED),
        (0.0, 2.0, 1.0, 0.5, claims.UNDECIDED),
        (-2.0, -0.1, -1.0, 0.5, claims.HOLDS),
        (-0.4, -0.1, -1.0, 0.5, claims.REFUTED),
        (0.1, 2.0, -1.0, 0.5, claims.REFUTED),
        (0.1, 0.4, 1.0, 0.0, claims.HOLDS),  # where the direction alone counts
        (-0.4, 0.1, 1.0, 0.0, claims.UNDECIDED),
        (-0.4, -0.1, 1.0, 0.0, claims.REFUTED),
    ],
)
def test_an_interval_decides_by_zero_and_by_a_share_of_what_is_reported(low, high, reported, share, wanted):
    assert claims.verdict(low, high, reported, share) == wanted


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (-0.004, 0.5, claims.UNDECIDED),
        (0.01, 0.5, claims.REFUTED),
        (-0.5, 0.04, claims.HOLDS),
        (-0.5, 0.06, claims.UNDECIDED),
    ],
)
def test_no_gain_that_is_printed_is_refuted_by_a_gain_and_holds_where_none_is_possible(low, high, wanted):
    assert claims.verdict_of_no_gain(low, high) == wanted
    measured = pd.DataFrame([{"claim": "it", "measure": "bleu", "repeat": "training", "seeds": 1, "tuned": True,
                              "gain": (low + high) / 2, "low": low, "high": high, "seed_error": 0.0}])  # fmt: skip
    assert claims.with_verdicts(measured, {"it": (-0.01, 0.5)})["verdict"].tolist() == [wanted]


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0.73, 0.9, claims.HOLDS),
        (0.71, 0.9, claims.UNDECIDED),
        (0.6, 0.73, claims.UNDECIDED),
        (0.6, 0.71, claims.REFUTED),
    ],
)
def test_a_speed_holds_where_all_measurements_reach_its_share(low, high, wanted):
    assert claims.verdict_of_speeds(low, high, 0.8, 0.9) == wanted


def test_a_speed_measured_once_decides_outside_a_tenth_alone():
    speeds = [(0.81, 1), (0.79, 1), (0.65, 1), (0.66, 1), (0.73, 3), (0.71, 3)]
    rows = [
        {"claim": "it", "measure": "ratio", "repeat": "measurement", "seeds": seeds, "tuned": True, "gain": ratio,
         "low": ratio, "high": ratio, "seed_error": math.nan} for ratio, seeds in speeds
    ]  # fmt: skip
    found = claims.with_verdicts(pd.DataFrame(rows), {"it": (0.8, 0.9)})
    wanted = [claims.HOLDS, claims.UNDECIDED, claims.REFUTED, claims.UNDECIDED, claims.HOLDS, claims.REFUTED]
    assert found["verdict"].tolist() == wanted


def test_a_wide_model_counts_for_the_big_row_alone():
    measured = claims.measured_gains(library()["duan-2020"])
    wide = measured[measured["data"].str.startswith("scale-width-256")]
    assert "future-cost-1:preset=big over transformer:preset=big, bleu" in set(wide["claim"])
    assert wide["claim"].str.contains("preset=big").all()
    others = measured[~measured["data"].str.startswith("scale-width-256")]
    assert not others["claim"].str.contains("preset=big").any()


def test_every_system_of_a_grid_that_answers_a_claim_counts(tmp_path):
    """So a second setting of a system stands beside the first instead of in its place."""
    (tmp_path / "results").mkdir()
    (tmp_path / "mine.yaml").write_text(
        """
        name: mine
        data: {languages: en-de, train: [a.en, a.de], dev: [b.en, b.de], tests: {test: [c.en, c.de]}}
        systems: {transformer: transformer, one: em-routing, other: em-routing}
        training: {max_steps: 1}
        """
    )
    (tmp_path / "results" / "mine.comparisons.csv").write_text(
        "system,baseline,metric,score,delta,low,high,seeds,test\n"
        "one,transformer,bleu,31,1,0.5,1.5,1,test\n"
        "other,transformer,bleu,29,-1,-1.5,-0.5,1,test\n"
    )
    measured = claims.measured_gains(library()["dou-2019"], tmp_path / "results")
    assert set(measured["claim"]) == {"em-routing over transformer, bleu"}
    assert measured["gain"].tolist() == [1.0, -1.0]


def test_readers_that_saw_other_numbers_of_words_are_left_out_and_transformers_are_not():
    measured = claims.measured_gains(library()["yang-2019"])
    unequal = measured[
        measured["data"].isin(
            [*("bcontrast-second-pass", "manpages-second-pass", "controlled-documents", "controlled-documents-sweeps")]
        )
    ]
    assert set(unequal["claim"]) == {"transformer-reg over transformer, bleu"}


def test_gains_are_of_systems_and_baselines_that_translate_the_test_set():
    counted = pd.concat(claims.measured_gains(paper) for paper in library().values())
    scores = {path.name: pd.read_csv(path) for path in comparison_files()[0].parent.glob("*.scores.csv")}
    for data, test in set(zip(counted["data"], counted["test"], strict=True)):
        table = scores[f"{data}.scores.csv"]
        baseline = table[(table["metric"] == "bleu") & (table["test"] == test)].iloc[0]
        assert baseline["score"] >= 10
    failed = scores["controlled-routing.scores.csv"].query("system == 'dynamic-routing' and metric == 'bleu'")
    assert (failed["score"] < 10).all()
    routing = counted["claim"].str.startswith("dynamic-routing over")
    assert not (routing & (counted["data"] == "controlled-routing")).any()
    assert set(counted.loc[counted["data"] == "claims-tatoeba-en-de", "test"]) == {"test"}  # newstest2014: 2 BLEU


@pytest.mark.parametrize(("several", "wanted"), [(1, claims.HOLDS), (3, claims.UNDECIDED)])
def test_of_several_answers_each_needs_the_more(several, wanted):
    """An interval from 0.1 to 2.0 leaves zero out at 95 %, and not at the 98.3 % of one among three."""
    row = {
        "measure": "bleu",
        "repeat": "training",
        "tuned": True,
        "gain": 1.05,
        "low": 0.1,
        "high": 2.0,
        "seed_error": 0.0,
    }
    rows = [{"claim": "a", "seeds": 1, **row}] * several
    rows += [{"claim": "b", "seeds": 1, **row}, {"claim": "b", "seeds": 3, **row}]  # of which one counts
    rows += [{"claim": "c", "seeds": 3, **row, "repeat": "measurement", "low": 0.6}] * 3  # a range is no interval
    found = claims.with_verdicts(pd.DataFrame(rows), dict.fromkeys("abc", (1.0, 0.5)))
    assert set(found.loc[found["claim"] == "a", "verdict"]) == {wanted}
    assert set(found.loc[found["claim"] != "a", "verdict"]) == {claims.HOLDS}
    error, of_power = 0.95 / norm.ppf(0.975), norm.ppf(0.8)
    wanted_smallest = (norm.ppf(1 - 0.025 / several) + of_power) * error
    assert list(found.loc[found["claim"] == "a", "smallest"]) == pytest.approx([wanted_smallest] * several, rel=0.01)
    assert found.loc[found["claim"] == "c", "smallest"].isna().all()


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ([], claims.NOT_TRIED),
        ([(1, claims.HOLDS), (1, claims.UNDECIDED)], "holds (one training)"),
        ([(1, claims.REFUTED), (3, claims.UNDECIDED)], claims.UNDECIDED),
        ([(3, claims.HOLDS), (3, claims.UNDECIDED), (1, claims.REFUTED)], claims.HOLDS),
        ([(3, claims.HOLDS), (5, claims.REFUTED)], claims.MIXED),
    ],
)
def test_one_training_counts_only_where_there_is_nothing_else(found, wanted):
    rows = pd.DataFrame(found, columns=["seeds", "verdict"]).assign(repeat="training", tuned=True)
    assert claims.overall(rows) == wanted


def test_the_figure_draws_every_gain_and_every_claim_has_a_row():
    paper = library()["zheng-2019"]
    figure = draw("paper-claims", Request((), options={"paper": "zheng-2019"}))
    reported, measured = claims.reported_gains(paper), claims.measured_gains(paper)
    points = figure.table[figure.table["mark"] == "points"]
    assert sorted(points["gain"]) == sorted([*reported["gain"], *measured["gain"]])
    assert [panel.title for panel in figure.panels] == ["reported", *dict.fromkeys(measured["data"])]
    told = figure.caption.partition("Panels by training text (learning rate): ")[2]
    texts = dict(part.split(": ") for part in told.removesuffix(".").split("; "))
    assert "claims-past-future (0.004)" in texts["45,000 controlled sentences"].split(", ")
    assert "multi30k-past-future (0.0003)" in texts["en-de text"].split(", ")
    assert all(panel.y.texts == tuple(reported.drop_duplicates("claim")["label"]) for panel in figure.panels)
    with pytest.raises(RunError, match="did you mean 'dou-2019'"):
        draw("paper-claims", Request((), options={"paper": "duo-2019"}))


def test_what_does_not_count_is_faint():
    figure = draw("paper-claims", Request((), options={"paper": "duan-2020"}))
    faint = {
        panel.title: {mark.style.opacity < 1 for mark in panel.marks if isinstance(mark, Points)}
        for panel in figure.panels
    }
    assert faint["reported"] == faint["scale-width-256-rate-0.001"] == {False}
    assert faint["scale-width-256"] == {True}  # its rate is known to be worse


def test_a_file_that_is_no_comparison_is_named(tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    (results / "mine.comparisons.csv").write_text("a,b\n1,2\n")
    with pytest.raises(RunError, match=r"mine\.comparisons\.csv: not the comparisons of an experiment"):
        claims.measured_gains(library()["dou-2019"], results)


def test_the_ledger_shows_the_interval_that_decides_and_what_several_gains_are_taken_as():
    reported = pd.DataFrame(
        {"claim": "a", "kind": "gain", "says": "A: better", "measure": "bleu", "gain": gain, "printed": "",
         "without": "", "table": "Table 1", "data": data}
        for gain, data in [(0.5, "one"), (1.5, "two")]
    )  # fmt: skip
    row = {"claim": "a", "measure": "bleu", "note": "", "repeat": "training", "seeds": 1, "seed_error": 0.0}
    row |= {"tuned": True, "gain": 1.0, "low": 0.0, "high": 2.0}
    measured = claims.with_verdicts(
        pd.DataFrame([{**row, "data": "x", "test": t} for t in ("test", "long")]), {"a": (1, 0.5)}
    )
    (line,) = ledger.claim_table(reported, measured).to_dict("records")
    assert line["reported"] == "+0.50 to +1.50 (Table 1); taken as +1.00"
    reach = norm.ppf(1 - 0.025 / 2) / norm.ppf(0.975)  # of two that count, each at 97.5 %
    interval = f"[{1 - reach:+.2f}, {1 + reach:+.2f}]".replace("-", "−")
    assert line["ours"] == f"+1.00 {interval} x, test, 1 seed; +1.00 {interval} x, long, 1 seed"
    assert line["level"] == "97.5%"
    one = ledger.claim_table(reported.head(1), measured)
    assert one["reported"].tolist() == ["+0.50 (Table 1)"]


def test_a_gain_that_a_later_table_prints_again_counts_once():
    reported = pd.DataFrame(
        [("Table 1", 1.5), ("Table 1", 0.5), ("Table 1", 0.5), ("Table 2", 1.5), ("Table 2", 2.0)],
        columns=["table", "gain"],
    ).assign(claim="a", data="WMT14")
    assert claims.expected_gains(reported)["a"] == pytest.approx((1.5 + 0.5 + 0.5 + 2.0) / 4)
