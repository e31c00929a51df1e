"""Cost by sentence length: what is measured at one length, and what is drawn of a table of `bench --lengths`."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from core_models.text.batches import collate
from workbench import cli
from workbench.benchmark import workload as shape_module
from workbench.benchmark.speed import measure, multiply_adds
from workbench.benchmark.workload import Conditions, Shape, decoding_batches, of_length, training_pairs
from workbench.experiments import ablation
from workbench.plotting.grammar import Line, Points
from workbench.store.runs import RunError
from workbench.views.ablation.length_cost import length_benches, length_costs
from workbench.views.ablation.length_cost_plots import length_cost

pytestmark = pytest.mark.long

SMALL = Shape(vocabulary=50, steps=1, warmup=0, sentences=2, batch_sentences=2, forced_length=6, repeats=1)


@pytest.mark.parametrize("length", [1, 10, 100, 3000])
def test_all_sentences_have_the_length_and_about_half_as_much_is_written(length):
    shape = of_length(Shape(), length)
    for sources, targets in training_pairs(shape):
        assert {len(one) for one in [*sources, *targets]} == {length}
    decoded = [source for batch in decoding_batches(shape) for source in batch]
    assert {len(source) for source in decoded} == {length} == {shape.forced_length}
    assert len(decoded) * length == pytest.approx(200 * 40 / 2, rel=0.3)


@pytest.mark.slow
def test_a_measurement_says_its_length_and_counts_the_work_of_it():
    """Guided routing looks at every pair of words, so a target word costs more in a longer sentence."""
    found = measure("transformer:preset=tiny", of_length(SMALL, 5), Conditions(threads=1))
    assert found["length"] == 5
    assert "length" not in measure("transformer:preset=tiny", SMALL, Conditions(threads=1))
    work = {
        length: [multiply_adds(f"{name}:preset=tiny", of_length(SMALL, length))["train_multiply_adds"] for name in
                 ("transformer", "gdr")]
        for length in (5, 50)
    }  # fmt: skip
    added = {length: gdr - plain for length, (plain, gdr) in work.items()}
    assert added[50] > 1.2 * added[5]


TABLE = pd.DataFrame(
    {
        "engine": ["transformer:preset=small", "gdr:capsule_width=32,preset=small"] * 2,
        "system": ["transformer:preset=small", "gdr:capsule_width=32,preset=small"] * 2,
        "precision": "float32",
        "length": [10, 10, 100, 100],
        "train_tokens_per_second": [1100.0, 550.0, 1010.0, 202.0],
        "train_ratio": [1.0, 0.5, 1.0, 0.2],
        "train_ceiling": [1.0, 0.8, 1.0, 0.4],
        "decode_sentences_per_second": [50.0, 40.0, 4.0, 2.0],
        "decode_ratio": [1.0, 0.8, 1.0, 0.5],
        "decode_ceiling": [1.0, 0.9, 1.0, 0.7],
    }
)


@pytest.fixture
def results(tmp_path):
    TABLE.to_csv(tmp_path / "length-cost-cpu.csv", index=False)
    TABLE.drop(columns="length").head(2).to_csv(tmp_path / "speed-cpu.csv", index=False)
    return tmp_path


def test_times_are_of_a_sentence_with_its_end(results):
    assert length_benches(results) == ["length-cost-cpu"]
    table, baseline = length_costs("length-cost-cpu", results)
    assert baseline == "transformer"
    assert set(table.system) == {"transformer", "gdr:capsule_width=32"}
    found = table.set_index(["system", "work", "length"]).milliseconds
    # 10 words and </s> at 1,100 words a second; 4 sentences of 100 words a second
    assert found["transformer", "training", 10] == pytest.approx(10)
    assert found["gdr:capsule_width=32", "training", 100] == pytest.approx(500)
    assert found["transformer", "decoding", 100] == pytest.approx(250)
    batch = collate(*next(training_pairs(of_length(Shape(), 10))))
    assert batch.target_tokens == 11 * len(batch)


def test_a_table_by_length_is_none_of_the_tables_of_options(results):
    folder = results.parent
    (folder / "results").symlink_to(results)
    assert ablation.benches(folder) == ["speed-cpu"]


def test_time_grows_above_and_speed_is_relative_below(results):
    table, baseline = length_costs("length-cost-cpu", results)
    figure = length_cost(table, baseline)
    training, decoding, relative, _ = figure.panels
    lines = [mark for mark in training.marks if isinstance(mark, Line)]
    assert [(mark.series, mark.rows()["milliseconds"].tolist()) for mark in lines] == [
        ("transformer", pytest.approx([10, 100])),
        ("gdr:capsule_width=32", pytest.approx([20, 500])),
    ]
    assert (training.title, decoding.title, training.x.texts) == ("training", "decoding", ("10", "100"))
    (ratio,) = (mark for mark in relative.marks if isinstance(mark, Line))
    assert ratio.rows()["ratio"].tolist() == [0.5, 0.2]
    (ceiling,) = (mark for mark in relative.marks if isinstance(mark, Points))
    assert ceiling.style.hollow
    assert ceiling.rows()["ceiling"].tolist() == [0.8, 0.4]
    assert "training 20.0 and 500.0 ms (0.50 and 0.20 times its speed)" in figure.summary


def test_tables_that_are_not_there_are_named(results, tmp_path):
    with pytest.raises(RunError, match=r"no table 'length-cost'.*did you mean 'length-cost-cpu'"):
        length_costs("length-cost", results)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="measure: workbench benchmark speed transformer gdr --lengths"):
        length_costs("length-cost-cpu", tmp_path / "empty")


def test_a_record_of_each_length_is_spoken(capsys, monkeypatch):
    """As the command speaks to the process that asked for it; of less work than it has."""
    monkeypatch.setattr(shape_module, "Shape", lambda steps: replace(SMALL, steps=steps))
    cli.app(
        [
            "benchmark",
            "speed",
            "transformer:preset=tiny",
            "--json",
            "--lengths",
            "2,3",
            "--steps",
            "1",
            *("--threads", "1"),
        ],
        standalone_mode=False,
    )
    records = [json.loads(line) for line in capsys.readouterr().out.strip().split("\n")]
    assert [record["length"] for record in records] == [2, 3]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--lengths", "10,ten"], "--lengths '10,ten': write whole numbers from 1"),
        (["--lengths", "0"], "--lengths '0': write whole numbers from 1"),
        (["--lengths", "10", "--peers", "python"], "leave out --peers"),
    ],
)
def test_lengths_that_cannot_be_measured_are_refused(options, said, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.app(["benchmark", "speed", "transformer", *options])
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())
