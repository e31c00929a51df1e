"""What of ours stands beside printed numbers: scores, sizes, speeds, kept results, routing; with origins."""

import json
import math

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from core_models.traces import TraceArray, write_traces
from tests.workbench.papers.written_runs import written_run
from workbench.evaluation import adequacy
from workbench.evaluation.alignment_error import ALIGNMENT_ERROR, AlignmentError
from workbench.evaluation.result_cache import of_forced_references, of_translations
from workbench.papers.comparison import NOT_HERE, SEE_OWN, compared, relative, reported
from workbench.papers.load import library
from workbench.papers.our_results import missing_results, our_results
from workbench.store.runs import RunError

pytestmark = pytest.mark.long

SCORES = "system,metric,score,low,high,signature,n,seeds,spread,test\n"
SPEEDS = (
    "engine,system,precision,device,threads,parameters,parameters_without_embeddings,train_ratio,decode_ratio\n"
    "a,transformer:preset=small,float32,cpu,2,7000000,5000000,1.0,1.0\n"
    "b,future-cost-1:preset=small,float32,cpu,2,7500000,5500000,0.8,1.1\n"
    "c,transformer:preset=big,float32,cpu,2,70000000,50000000,0.1,0.1\n"
    "d,future-cost-1:preset=big,float32,cpu,2,75000000,55000000,0.05,0.2\n"
    "e,future-cost-1:preset=small,int8,cpu,2,7500000,5500000,,1.4\n"
    "marian,,,,,,,0.8,0.6\n"
)


def _table(paper="duan-2020", name="table-1"):
    return library()[paper].table(name)


@pytest.fixture
def results(tmp_path):
    """A result folder beside the grid of its experiment, as `workbench experiment table` writes them."""
    folder = tmp_path / "experiments" / "results"
    folder.mkdir(parents=True)
    signature = "nrefs:1|case:mixed|tok:13a"
    lines = [
        f"plain,bleu,36.5,34.9,38.2,{signature},1000,1,,flickr",
        f"plain,chrf,60.5,59.3,61.7,{signature},1000,1,,flickr",
        f"two,bleu,36.0,34.4,37.6,{signature},1000,3,0.4,flickr",
        f"two,bleu,30.0,29.0,31.0,{signature},500,3,0.2,coco",
        f"two@1250,bleu,31.1,29.0,33.0,{signature},1000,1,,flickr",
    ]
    (folder / "captions.scores.csv").write_text(SCORES + "\n".join(lines) + "\n", encoding="utf-8")
    grid = {"plain": "transformer:preset=small", "two": "future-cost-2:preset=small,weight=0.5"}
    text = "{languages: en-de, train: [a, b], dev: [a, b], tests: {flickr: [a, b], coco: [a, b]}}"
    (folder.parent / "captions.yaml").write_text(
        f"name: captions\ndata: {text}\ntraining: {{max_steps: 9}}\nsystems:\n"
        + "".join(f'  {name}: "{system}"\n' for name, system in grid.items()),
        encoding="utf-8",
    )
    return folder


@pytest.fixture
def logged(tmp_path, prepared):
    """Runs whose logs a test writes: trained at so many tokens a second, of so many parameters."""

    def write(name: str, system: str, parameters: int, speed: float, threads: int = 2):
        run = written_run(tmp_path / "runs", name, system, prepared)
        start = {
            "event": "start",
            "step": 0,
            "parameters": parameters,
            "parameters_without_embeddings": parameters - 10**6,
        }
        events = [
            {**start, "threads": threads},
            *({"event": "train", "step": 1, "tokens_per_second": speed + n} for n in (-1, 0, 9)),
        ]
        (run.folder / "training.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in events), encoding="utf-8")
        return run

    return write


def _of(found, row, measure):
    return found[(found["row"] == row) & (found["measure"] == measure)]


def test_results_of_experiments_keep_where_they_are_from(results):
    found = our_results(_table(), [], "", results)
    assert found["row"].tolist() == ["transformer", "model-2", "model-2"]
    assert found["score"].tolist() == [36.5, 36.0, 30.0]
    assert found["where"].tolist() == ["experiment captions, 1 seed", *["experiment captions, 3 seeds"] * 2]
    assert found["test"].tolist() == ["flickr", "flickr", "coco"]
    assert set(found["data"]) == {"captions"}
    assert found["system"].tolist()[0] == "transformer:preset=small"
    (results / "captions.scores.csv").write_text("nothing\n1\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"captions\.scores\.csv: not the scores of an experiment"):
        our_results(_table(), [], "", results)


def test_a_run_goes_before_an_experiment_and_has_sacrebleus_score(results, prepared, tmp_path):
    run = written_run(tmp_path / "runs", "mine", "future-cost-2:preset=tiny", prepared, spoiled=5)
    opened = run.translations("test")
    found = our_results(_table(), [run], "test", results).set_index("row")
    assert found.loc["model-2", "score"] == pytest.approx(
        BLEU().corpus_score(opened.hypotheses, [opened.test_set.references]).score
    )
    assert found.loc["model-2", "low"] <= found.loc["model-2", "score"] <= found.loc["model-2", "high"]
    assert found.loc["model-2", ["where", "test", "data"]].tolist() == ["run mine", "test", prepared.folder.parent.name]
    assert found.loc["transformer", "where"] == "experiment captions, 1 seed"
    with pytest.raises(RunError, match="workbench translate"):
        our_results(_table(), [run], "wmt14", results)


def test_what_is_printed_keeps_its_digits_and_what_was_not_run_says_so(results):
    table = _table()
    found = our_results(table, [], "", results)
    shown = reported(table, found).set_index("row")
    assert len(shown) == len(table.rows)
    assert shown.loc["+Model I", ["EN-DE BLEU", "EN-DE #Speed", "ours"]].tolist() == ["27.97", "12.5", NOT_HERE]
    assert shown.loc["+Model II", ["EN-DE BLEU", "ours"]].tolist() == ["28.17", "BLEU 36.00, 30.00"]  # two test sets
    assert SEE_OWN in shown.loc["Trans.base", "ours"].tolist()
    second = compared(table, found).set_index("row").loc["+Model II"]
    assert second["ours"].tolist() == [36.0, 30.0]
    assert second["reported"].tolist() == ["28.17"] * 2  # of its own language pair alone
    counted = _table("yang-2019", "table-1")
    assert "ours" not in reported(counted, our_results(counted, [], "", results))


def test_another_language_pair_and_another_way_of_counting_are_said(results):
    table = _table("zheng-2019")
    line = compared(table, our_results(table, [], "", results)).set_index("row").loc["Transformer"]
    assert line["ours"] == 36.5
    assert line["reported"].startswith("45.83 (Dev), 46.66 (MT04)")
    assert line["differs"] == "en-de, reported zh-en; case-sensitive sacreBLEU; reported case-insensitive"
    table = _table()
    assert compared(table, our_results(table, [], "", results))["differs"].tolist() == ["", "", ""]


def test_sizes_and_speeds_of_benches_are_relative_to_the_baseline_of_the_same_size(results):
    (results / "captions.scores.csv").unlink()
    (results / "speed-cpu.csv").write_text(SPEEDS, encoding="utf-8")
    table = _table()
    found = our_results(table, [], "", results)
    assert _of(found, "transformer", "parameters")["score"].tolist() == [7.0]
    assert _of(found, "transformer", "train-speed").empty  # it is what others are relative to
    assert _of(found, "model-1", "train-speed")["score"].tolist() == [0.8]
    assert _of(found, "model-1-big", "train-speed")["score"].tolist() == pytest.approx([0.5])
    assert set(found["where"]) == {"bench speed-cpu (float32, cpu, 2 threads)"}
    shown = compared(table, found).set_index(["row", "measure"])
    speed = shown.loc[("+Model I", "Training speed (× baseline)")]
    assert speed["reported"] == "0.98"  # 12.5 of 12.7
    assert relative(table, table.row("model-1-big"), table.columns[1]) == pytest.approx(9.8 / 10.1)
    sizes = our_results(_table("zheng-2019"), [], "", results)
    assert _of(sizes, "transformer", "parameters-without-embeddings")["score"].tolist() == [
        5.0,
        50.0,
    ]  # there no row is big
    assert set(our_results(_table("dou-2019"), [], "", results)["row"]) == {"transformer"}
    (results / "speed-cpu.csv").write_text("engine\na\n", encoding="utf-8")
    with pytest.raises(
        RunError, match=r"speed-cpu\.csv: not a table of speeds .*; write it again: workbench benchmark"
    ):
        our_results(table, [], "", results)


def test_sizes_and_speeds_of_runs_are_those_of_their_logs(logged, results, tmp_path):
    base = logged("plain", "transformer:preset=tiny", 8_000_000, 1000.0)
    run = logged("mine", "future-cost-1:preset=tiny", 8_500_000, 900.0)
    found = our_results(_table(), [base, run], "test", results)
    assert _of(found, "model-1", "parameters")["score"].tolist() == [8.5]
    assert _of(found, "model-1", "train-speed")["score"].tolist() == [0.9]  # of the medians
    assert _of(found, "model-1", "train-speed")["where"].tolist() == ["run mine"]
    assert "other load on the machine" in _of(found, "model-1", "train-speed")["how"].item()
    assert _of(our_results(_table(), [run], "test", results), "model-1", "train-speed").empty  # relative to nothing
    slower = logged("fewer-threads", "transformer:preset=tiny", 8_000_000, 1000.0, threads=1)
    assert _of(our_results(_table(), [slower, run], "test", results), "model-1", "train-speed").empty
    (results / "speed-cpu.csv").write_text(SPEEDS, encoding="utf-8")
    found = our_results(_table(), [base, run], "test", results)
    assert _of(found, "model-1", "train-speed")["score"].tolist() == [0.8]  # a bench says it better than a log
    assert _of(found, "model-1", "parameters")["where"].tolist() == ["run mine"]


@pytest.mark.parametrize("other", [{"device": "cuda"}, {"engine": "ctranslate2"}, {"search": {"beam": 1}}])
def test_decoding_speeds_are_compared_with_one_engine_on_one_device_alone(logged, results, other):
    def translated(name, system, seconds, **conditions):
        run = logged(name, system, 8_000_000, 1000.0)
        path = run.folder / "translations" / "test" / "meta.json"
        meta = {**json.loads(path.read_text(encoding="utf-8")), "device": "cpu", "search": {"beam": 5}}
        path.write_text(json.dumps({**meta, "seconds": seconds, **conditions}), encoding="utf-8")
        return run

    base, run = translated("plain", "transformer:preset=tiny", 8.0), translated("mine", "gdr:preset=tiny", 10.0)
    table = _table("zheng-2019")
    assert _of(our_results(table, [base, run], "test", results), "gdr", "decode-speed")["score"].tolist() == [0.8]
    elsewhere = translated("elsewhere", "transformer:preset=tiny", 8.0, **other)
    assert _of(our_results(table, [elsewhere, run], "test", results), "gdr", "decode-speed").empty


def test_added_parameters_are_those_of_the_runs_baseline(logged, results):
    base = logged("plain", "transformer:preset=tiny", 8_000_000, 1000.0)
    run = logged("linear", "linear-combination:form=matrix_dense,preset=tiny", 8_250_000, 900.0)
    found = our_results(_table("dou-2019"), [base, run], "test", results)
    assert _of(found, "linear-combination", "parameters-added")["score"].tolist() == [0.25]
    assert _of(found, "linear-combination", "parameters").empty  # that row does not print it
    wider = logged("wider", "transformer:preset=tiny,d_model=128", 9_000_000, 1000.0)
    assert _of(
        our_results(_table("dou-2019"), [wider, run], "test", results), "linear-combination", "parameters-added"
    ).empty


def test_what_was_computed_once_stands_there_until_its_run_changes(results, prepared, tmp_path):
    table = _table("zheng-2019", "table-3")
    run = written_run(tmp_path / "runs", "plain", "transformer:preset=tiny", prepared, spoiled=9)
    found = our_results(table, [run], "test", results)
    assert found.empty
    assert missing_results(table, [run], "test", found) == {"workbench adequacy {} --test test": [run]}
    aligner, _ = adequacy.aligner_of([run], "test")
    computed = adequacy.adequacy_table([run], "test", aligner, samples=50).set_index("measure")
    found = our_results(table, [run], "test", results).set_index("measure")
    assert set(found.index) == {"cdr", "over", "under"}
    assert found.loc["cdr", "score"] == computed.loc["CDR", "score"]
    assert found.loc["under", ["low", "high"]].tolist() == computed.loc["under (proxy, %)", ["low", "high"]].tolist()
    assert "a proxy by alignment links, not a human count" in found.loc["over", "how"]
    assert aligner.digest in found.loc["cdr", "how"]
    assert not missing_results(table, [run], "test", our_results(table, [run], "test", results))
    lines = run.folder / "translations" / "test" / "hypotheses.txt"
    lines.write_text(lines.read_text(encoding="utf-8").replace("falsch", "anders"), encoding="utf-8")
    assert adequacy.ADEQUACY.load(run, of_translations(run, "test"), "test") is None


def test_an_alignment_error_is_kept_of_the_weights_it_was_measured_with(results, prepared, tmp_path):
    run = written_run(tmp_path / "runs", "rnn", "rnnsearch:preset=tiny", prepared)
    run.weights.write_bytes(b"weights")
    result = AlignmentError(aer=0.25, sentences=15, layer="mean", head="mean", argmax="words", links="gold.txt")
    ALIGNMENT_ERROR.save(run, of_forced_references(run, "test"), result, "test")
    table = _table("zheng-2018", "table-4")
    line = compared(table, our_results(table, [run], "test", results)).set_index("row").loc["Base"]
    assert (line["ours"], line["reported"], line["measure"]) == (25.0, "39.73", "AER (%)")
    assert line["differs"].endswith("gold links: gold.txt")
    run.weights.write_bytes(b"others")
    found = our_results(table, [run], "test", results)
    assert found.empty
    command = "workbench figure alignment-error --run {} --test test --option links=FILE"
    assert missing_results(table, [run], "test", found) == {command: [run]}


def test_routing_by_iteration_is_that_of_the_stored_trace(results, prepared, tmp_path):
    run = written_run(tmp_path / "runs", "routed", "em-routing:preset=tiny", prepared)
    even, one = np.full((1, 2, 3, 4), 0.25), np.zeros((1, 2, 3, 4))  # iteration, source, layer, capsule
    one[..., 0, 0] = one[..., 1, 1] = one[..., 2, 2] = 1.0
    values = np.concatenate([even, (even + one) / 2, one])
    array = TraceArray(("iteration", "source", "layer", "capsule"), values, "capsule")
    write_traces(run.results / "traces" / "test", {0: {"em_routing.encoder.assignments": array}})
    table = _table("dou-2019", "figure-4")
    shown = compared(table, our_results(table, [run], "test", results))
    assert len(shown) == 6
    by_iteration = shown.pivot(index="row", columns="measure", values="ours")
    assert by_iteration["Entropy (nats)"].tolist() == pytest.approx(
        [math.log(4), -5 / 8 * math.log(5 / 8) - 3 / 8 * math.log(1 / 8), 0.0], abs=1e-6
    )
    assert by_iteration["Diversity (1 − cosine)"].tolist()[::2] == pytest.approx([0.0, 1.0], abs=1e-6)
    assert shown["reported"].tolist() == ["6.24", "0.0", "5.93", "0.09", "5.86", "0.18"]
    assert "3 layers and 4 capsules" in shown["differs"].tolist()[0]


def test_where_curves_by_length_are_printed_ours_stand_by_length(results, prepared, tmp_path):
    run = written_run(tmp_path / "runs", "plain", "transformer:preset=tiny", prepared, spoiled=4)
    table = _table("dou-2019", "figure-5")
    found = our_results(table, [run], "test", results)
    assert set(found["row"]) == {"transformer"}
    assert found["n"].sum() == len(run.translations("test"))
    opened = run.translations("test")
    short = [number for number, line in enumerate(opened.test_set.sources) if len(line.split()) <= 10]
    pairs = [(opened.hypotheses[number], opened.test_set.references[number]) for number in short]
    wanted = BLEU().corpus_score([one for one, _ in pairs], [[other for _, other in pairs]]).score
    (first,) = found[found["part"].str.endswith("(0,10]")].to_dict("records")
    assert (first["n"], first["score"]) == (len(short), pytest.approx(wanted))
    shown = compared(table, found)
    assert shown["measure"].tolist()[0].startswith("BLEU, source length (words) (0,10]")
