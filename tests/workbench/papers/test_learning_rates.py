"""Of trainings that differ in their learning rate alone the ledger counts those with the lowest dev losses."""

from decimal import Decimal
from typing import Any

import pandas as pd
import pytest
import yaml

from workbench.experiments.grid import read_experiment
from workbench.papers import claims, ledger
from workbench.papers.findings import measured_findings
from workbench.papers.learning_rates import better_rate, other_rates
from workbench.papers.load import library
from workbench.papers.schema import Finding, Measurement

TEXT = {"controlled": {"sentences": 10, "dev": 2, "test": 2}}


@pytest.fixture
def grid(tmp_path):
    """Writes a grid and the dev losses of its systems: first those of an earlier step, which do not count."""
    (tmp_path / "results").mkdir()

    def write(name, rate, losses, **training):
        systems = {system: f"{system}:preset=tiny" for system in losses}
        settings = {"learning_rate": rate, "max_steps": 20, **training}
        about = {"name": name, "data": TEXT, "systems": systems, "training": settings}
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(about, sort_keys=False))
        ends = [(system, seed, 20, loss) for system, seeds in losses.items() for seed, loss in enumerate(seeds)]
        begun = [(system, seed, 10, 0.0) for system, seed, *_ in ends]
        rows = pd.DataFrame(ends + begun, columns=["system", "seed", "step", "dev_loss"])
        rows.to_csv(tmp_path / "results" / f"{name}.dev-losses.csv", index=False)
        return path

    return write


def test_the_rate_counts_at_which_both_systems_end_lowest_together(grid):
    high = grid("high", 0.004, {"transformer": [1.0, 1.02], "gdr": [1.0, 1.0]})
    low = grid("low", 0.002, {"transformer": [0.8], "gdr": [1.1, 1.1]})  # 1.9 in place of 2.01
    assert better_rate(high, "gdr", "transformer") == 0.002
    assert better_rate(low, "gdr", "transformer") is None
    assert better_rate(low, "gdr", "gdr") == 0.004


@pytest.mark.parametrize(("loss", "wanted"), [(0.93, None), (0.91, 0.002)])
def test_a_rate_is_better_by_two_standard_errors_or_not_at_all(grid, loss, wanted):
    """Losses of 0.97 and 1.03 have a variance of 0.0018: means of two and of one lie 2 * 0.052 apart by chance."""
    high = grid("high", 0.004, {"transformer": [0.97, 1.03], "gdr": [1.0, 1.0]})
    grid("low", 0.002, {"transformer": [loss - 0.02], "gdr": [1.0, 1.0]})
    assert better_rate(high, "gdr", "transformer") == wanted


def test_by_how_much_dev_losses_are_lower_at_another_rate(grid):
    """By 0.09, of which the spread of 0.0018 makes sqrt(3) standard errors; seen from there it is as much higher."""
    high = grid("high", 0.004, {"transformer": [0.97, 1.03], "gdr": [1.0, 1.0]})
    low = grid("low", 0.002, {"transformer": [0.91], "gdr": [1.0, 1.0]})
    assert other_rates(high, "gdr", "transformer") == {0.002: pytest.approx((1.91, 3**0.5))}
    assert other_rates(low, "gdr", "transformer") == {0.004: pytest.approx((2.0, -(3**0.5)))}
    assert other_rates(low.with_name("none.yaml"), "gdr", "transformer") == {}


def test_one_training_at_a_lower_rate_hides_no_other_rate_that_is_better(grid):
    """At 0.001 one training is lowest of all, by 0.05, and not by two standard errors, 0.055; at 0.002 four are."""
    high = grid("high", 0.004, {"transformer": [0.97, 1.03], "gdr": [1.0, 1.0]})
    grid("low", 0.002, {"transformer": [0.945, 0.965, 0.955, 0.9551], "gdr": [1.0, 1.0]})
    grid("lowest", 0.001, {"transformer": [0.95], "gdr": [1.0]})
    assert better_rate(high, "gdr", "transformer") == 0.002


def test_a_training_in_two_grids_is_one_seed(grid):
    """Counted twice, the losses of the two rates would lie 2.5 standard errors apart, in place of 1.4."""
    high = grid("high", 0.004, {"transformer": [0.9, 1.1], "gdr": [1.0, 1.0]})
    for name in ("low", "low-again"):
        grid(name, 0.002, {"transformer": [0.75], "gdr": [1.0]})
    assert better_rate(high, "gdr", "transformer") is None


def test_two_trainings_of_one_seed_are_two(grid):
    """Of two machines, say: their mean is 1, which is not better; of either 0.8 alone it would be."""
    high = grid("high", 0.004, {"transformer": [0.99, 1.01], "gdr": [1.0, 1.0]})
    for name, loss in (("low", 0.8), ("low-elsewhere", 1.2), ("low-once-more", 1.0)):
        grid(name, 0.002, {"transformer": [loss], "gdr": [1.0]})
    assert better_rate(high, "gdr", "transformer") is None


def test_without_two_seeds_of_any_rate_none_is_known_to_be_better(grid):
    high = grid("high", 0.004, {"transformer": [1.0], "gdr": [1.0]})
    grid("low", 0.002, {"transformer": [0.1], "gdr": [0.1]})
    assert better_rate(high, "gdr", "transformer") is None


@pytest.mark.parametrize(
    ("training", "systems"),
    [({"max_steps": 7}, ("transformer", "gdr")), ({}, ("transformer", "em-routing"))],
    ids=["another training", "another system"],
)
def test_other_trainings_and_systems_are_not_compared(grid, training, systems):
    high = grid("high", 0.004, {"transformer": [1.0, 1.0], "gdr": [1.0, 1.0]})
    grid("low", 0.002, {system: [0.1, 0.1] for system in systems}, **training)
    assert better_rate(high, "gdr", "transformer") is None


def test_bookkeeping_is_no_other_training_and_a_grid_without_losses_is_no_worse(grid, tmp_path):
    high = grid("high", 0.004, {"transformer": [1.0, 1.0], "gdr": [1.0, 1.0]})
    grid("low", 0.002, {"transformer": [0.9, 0.9], "gdr": [0.9, 0.9]}, keep_last=3)
    assert better_rate(high, "gdr", "transformer") == 0.002
    (tmp_path / "results" / "high.dev-losses.csv").unlink()
    assert better_rate(high, "gdr", "transformer") is None
    assert better_rate(tmp_path / "none.yaml", "gdr", "transformer") is None


def test_a_worse_rate_counts_only_where_there_is_nothing_else():
    row = {"claim": "a", "measure": "bleu", "note": "", "test": "test", "repeat": "training", "seed_error": 0.1}
    row |= {"gain": 1.0, "low": 0.5, "high": 1.5}
    settings = [("tuned", 3, True), ("tuned once", 1, True), ("not tuned", 3, False), ("not tuned once", 1, False)]
    measured = pd.DataFrame([{**row, "data": data, "seeds": seeds, "tuned": tuned} for data, seeds, tuned in settings])
    assert claims.counting(measured)["data"].tolist() == ["tuned"]
    assert claims.counting(measured[1:])["data"].tolist() == ["tuned once"]
    assert claims.counting(measured[2:])["data"].tolist() == ["not tuned"]
    reported = pd.DataFrame(
        [{"claim": "a", "kind": "gain", "says": "A", "measure": "bleu", "gain": 1.0, "printed": "", "without": "",
          "table": "Table 1", "data": "x"}]
    )  # fmt: skip
    (line,) = ledger.claim_table(reported, claims.with_verdicts(measured, {"a": (1.0, 0.5)})).to_dict("records")
    assert line["ours"].endswith("3 seeds; and 1 of one training; and 2 at a rate with a higher dev loss")
    untuned = claims.with_verdicts(measured[2:], {"a": (1.0, 0.5)})
    (line,) = ledger.claim_table(reported, untuned).to_dict("records")
    assert line["ours"].endswith("3 seeds; and 1 of one training; all at a rate with a higher dev loss")


def test_a_row_of_a_file_is_asked_by_its_system_however_it_is_written(grid, tmp_path):
    """The rate of gdr is known not to be the best, that of coverage is; a stored difference is to the first system.

    The two rates of gdr-bow are as good, and only together with the Transformer the lower one is better.
    """
    same = {"gdr-bow": [1.0, 1.0]}
    grid("high", 0.004, {"transformer": [1.0, 1.0], "gdr": [1.0, 1.0], "coverage": [0.5, 0.5], **same})
    grid("low", 0.002, {"transformer": [0.9, 0.9], "gdr": [0.2, 0.2], "coverage": [1.0, 1.0], **same})
    systems = read_experiment(tmp_path / "high.yaml").systems
    table = pd.DataFrame({"system": [*systems, *systems.values()], "value": 1.0, "low": 0.9, "high": 1.1})
    for name in ("high.tables", "high.beside-low-0.002"):
        table.to_csv(tmp_path / "results" / f"{name}.csv", index=False)

    def tuned(system: str, file: str = "high.tables", **more: Any) -> bool:
        measurement = Measurement(file=file, where={"system": system}, value="value", **more)
        finding = Finding(id="it", kind="property", what="It", where="here", reported="1", ours=(measurement,))
        paper = library()["dou-2019"].model_copy(update={"findings": (finding,)})
        (row,) = measured_findings(paper, tmp_path / "results")
        return row["tuned"]

    assert not tuned("gdr", "high.beside-low-0.002")
    for name in ("gdr", systems["gdr"]):
        assert not tuned(name)
        assert not tuned(name, minus=Decimal("0.5"))
    for name in ("coverage", systems["coverage"]):
        assert tuned(name, minus=Decimal("0.5"))
        assert not tuned(name, minus={"system": systems["gdr"]}), "by the losses of both"
        assert tuned(name, baseline="transformer")
        assert not tuned(name, baseline="gdr")
    assert tuned("gdr-bow", minus=Decimal("0.5")), "a property of one system, by its own losses alone"
    assert not tuned("gdr-bow")
