"""The command line: what each command leaves behind and prints, quick help, and one sentence for what is wrong."""

import csv
import gzip
import io
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import core_models
from analyses.scores import PRESETS
from core_models.checkpoint import read_tensors
from core_models.systems import build, catalogue, parameters
from workbench import cli, evaluation, segment_annotations
from workbench.runs import open_run

COMMANDS = (
    "data",
    "train",
    "resume",
    "average",
    "translate",
    "outside",
    "papers",
    "analyse",
    "rating",
    "aligner",
    "adequacy",
    "contrast",
    "score",
    "evaluate",
    "compare",
    "trace",
    "runs",
    "systems",
    "figure",
    "bundle",
    "report",
    "experiment",
    "export",
    "demo",
    "app",
)
STEPS = (
    "--set",
    "max_steps=4",
    "--set",
    "validate_every=2",
    "--set",
    "log_every=1",
    "--set",
    "batch_tokens=256",
    "--device",
    "cpu",
)


def _run(*arguments: object, input: str | None = None) -> str:
    """Standard output of a command that must end well."""
    found = CliRunner().invoke(cli.app, [str(argument) for argument in arguments], input=input)
    assert found.exit_code == 0, f"{found.output}\n{found.exception!r}"
    return found.stdout


def _refused(capsys, monkeypatch, *arguments: object) -> str:
    """What a command says that must be answered with one sentence and exit code 2."""
    monkeypatch.setattr(sys, "argv", ["workbench", *map(str, arguments)])
    monkeypatch.setenv(
        "MALLOC_TRIM_THRESHOLD_", "1"
    )  # else main would start itself again with the allocator's settings
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    said = capsys.readouterr().err.strip()
    assert stopped.value.code == 2, said
    assert "Traceback" not in said
    assert said.startswith("workbench: ")
    return said


def _table(text: str) -> list[dict[str, str]]:
    header, *rows = [line.split("\t") for line in text.strip().split("\n")]
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.fixture
def folders(copied_runs) -> list[Path]:
    return [copied_runs / "demo" / name for name in ("transformer", "future-cost-1", "future-cost-2")]


@pytest.mark.parametrize("command", [(), ("data",), ("train",), ("experiment", "run")])
def test_help_is_quick_and_imports_no_torch(command):
    script = (
        "import sys, time; from workbench import cli\n"
        f"sys.argv = {['workbench', *command, '--help']!r}\n"
        "try: cli.main()\nexcept SystemExit as end: assert end.code == 0\n"
        "heavy = {'torch', 'pandas', 'numpy', 'streamlit', 'plotly', 'matplotlib'} & set(sys.modules)\n"
        "print('MEASURED', time.process_time(), sorted(heavy))"
    )
    already = {
        **os.environ,
        "MALLOC_TRIM_THRESHOLD_": "1",
    }  # else main starts itself again with the allocator's settings
    seconds: list[float] = []
    while len(seconds) < 3 and min(seconds, default=1.0) >= 1.0:  # others may have slowed the processor down
        found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=already)
        help_text, _, measured = found.stdout.partition("MEASURED ")
        taken, heavy = measured.split(maxsplit=1)
        assert heavy.strip() == "[]"
        seconds.append(float(taken))
    assert min(seconds) < 1.0, "CPU time from the start of the interpreter, the best of three"
    if not command:
        assert all(f" {name} " in help_text for name in COMMANDS)


def test_controlled_text_can_be_prepared_from_files_archives_tables_and_documents(tmp_path):
    text, out = tmp_path / "text", tmp_path / "prepared"
    said = _run("data", "controlled", "--out", text, "--sentences", 120, "--dev", 10, "--test", 10, "--seed", 3)
    assert "bleu ceiling" in said
    again = tmp_path / "again"
    _run("data", "controlled", "--out", again, "--sentences", 120, "--dev", 10, "--test", 10, "--seed", 3)
    assert {path.name: path.read_bytes() for path in text.iterdir()} == {
        path.name: path.read_bytes() for path in again.iterdir()
    }

    for language in ("en", "de"):
        (text / f"train.{language}.gz").write_bytes(gzip.compress((text / f"train.{language}").read_bytes()))
    pairs = zip(*((text / f"dev.{language}").read_text().splitlines() for language in ("en", "de")), strict=True)
    (text / "table.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    said = _run(
        "data",
        "prepare",
        "--train",
        f"{text}/train.en.gz,{text}/train.de.gz",
        "--dev",
        f"{text}/dev.en,{text}/dev.de",
        "--test",
        f"whole={text}/test.en,{text}/test.de",
        "--test",
        f"table={text}/table.tsv",
        "--pieces",
        120,
        "--languages",
        "en-de",
        "--out",
        out,
    )
    assert "train: " in said
    from core_models.text.binary import Prepared

    prepared = Prepared.open(out)
    assert prepared.test_names == ["dev", "whole", "table"]
    assert prepared.test("whole").documents == (text / "test.docids").read_text().splitlines()
    assert prepared.test("table").documents is None
    assert prepared.test("table").sources == prepared.test("dev").sources
    assert (prepared.manifest["source_language"], prepared.manifest["target_language"]) == ("en", "de")
    assert len(prepared.source_vocabulary) == 120


def test_training_that_ran_out_of_time_is_resumed_to_the_weights_of_an_uninterrupted_one(prepared, tmp_path):
    common = ("future-cost-1:preset=tiny,weight=0.7", "--data", prepared.folder, "--search", "beam=2", *STEPS)
    said = _run("train", *common, "--out", tmp_path / "parts", "--minutes", "0.000001")
    assert f"not finished: workbench resume {tmp_path / 'parts'}" in said
    assert "all steps done" in _run("resume", tmp_path / "parts", "--device", "cpu")
    _run("train", *common, "--out", tmp_path / "whole")
    assert (tmp_path / "parts" / "weights.safetensors").read_bytes() == (
        tmp_path / "whole" / "weights.safetensors"
    ).read_bytes()
    config = open_run(tmp_path / "whole").config
    assert (config.search.beam, config.training.max_epochs, config.training.max_steps) == (2, None, 4)

    _run(
        "train",
        *common,
        "--out",
        tmp_path / "after",
        "--init-from",
        f"{tmp_path / 'whole'}@4",
        "--set",
        "early_stopping.patience=3",
    )
    assert open_run(tmp_path / "after").config.training.early_stopping.patience == 3


def test_an_average_is_the_mean_of_the_latest_checkpoints(prepared, tmp_path):
    run = tmp_path / "run"
    _run("train", "transformer:preset=tiny", "--data", prepared.folder, "--out", run, *STEPS, "--set", "keep_last=3")
    (run / "checkpoints" / "step-1000000.safetensors").write_bytes(
        (run / "checkpoints" / "step-000002.safetensors").read_bytes()
    )
    before = (run / "weights.safetensors").read_bytes()
    said = _run("average", run, "--last", 2)
    assert "step-000004, step-1000000" in said, "by step, not by name"
    two, four, mean = (
        read_tensors(run / "checkpoints" / f"{name}.safetensors")
        for name in ("step-000002", "step-000004", "average-2")
    )
    assert all((mean[name] - (two[name] + four[name]) / 2).abs().max() < 1e-6 for name in mean)
    assert (run / "weights.safetensors").read_bytes() == before
    _run("average", run, "--last", 2, "--use")
    assert (run / "weights.safetensors").read_bytes() == (run / "checkpoints" / "average-2.safetensors").read_bytes()
    assert core_models.load(f"{run}@average-2").systems


def test_a_file_and_standard_input_are_translated_line_by_line(demo_runs, tmp_path):
    run = demo_runs / "demo" / "transformer"
    lines = ["the dog sleeps .", "", "ein Größenwahn .", ""]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    _run("translate", run, "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt")
    found = (tmp_path / "out.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert found == [one.text for one in core_models.load(run).translate(lines)]
    printed = _run("translate", run, "--input", "-", input="".join(f"{line}\n" for line in lines))
    assert printed.removesuffix("\n").split("\n") == found
    best = _run("translate", run, "--input", tmp_path / "in.txt", "--n-best", 2, "--beam", 2)
    expected = core_models.load(run).translate(lines, beam=2, n_best=2)
    lists = [(found, *found.n_best) for found in expected]
    assert best.removesuffix("\n").split("\n") == [
        f"{number}\t{one.score:.4f}\t{one.text}" for number, several in enumerate(lists) for one in several
    ]
    assert best == _run("translate", run, "--input", tmp_path / "in.txt", "--search", "n_best=2", "--beam", 2)


def test_a_run_whose_search_asks_for_several_prints_them(copied_runs, tmp_path):
    run = copied_runs / "demo" / "transformer"
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("n_best: 1", "n_best: 2"))
    (tmp_path / "in.txt").write_text("the dog sleeps .\n", encoding="utf-8")
    printed = _run("translate", run, "--input", tmp_path / "in.txt")
    assert printed == _run("translate", run, "--input", tmp_path / "in.txt", "--n-best", 2)
    assert printed.startswith("0\t")


def test_prefix_and_ensemble_reach_the_search(demo_runs, tmp_path):
    runs = [demo_runs / "demo" / name for name in ("transformer", "future-cost-2")]
    (tmp_path / "in.txt").write_text("the dog sleeps .\n", encoding="utf-8")
    begun = _run("translate", runs[0], "--input", tmp_path / "in.txt", "--prefix", "der Hund")
    assert begun.startswith("der Hund")
    together = _run("translate", *runs, "--input", tmp_path / "in.txt", "--ensemble")
    assert together.strip() == core_models.load(runs).translate(["the dog sleeps ."])[0].text.strip()


def test_a_test_set_is_translated_with_trees_and_traced_in_part(folders):
    shutil.rmtree(folders[2] / "traces")
    _run("translate", folders[2], "--test", "dev", "--trees", "--beam", 2)
    run = open_run(folders[2])
    assert run.translations("dev").has_trees
    assert run.translations("dev").meta["search"]["beam"] == 2
    _run("trace", folders[2], "--test", "dev", "--names", "log_prob,future_cost.*", "--sentences", "0-2,5")
    assert list(run.traces("dev")) == [0, 1, 2, 5]
    assert set(run.traces("dev").names) == {"log_prob", "future_cost.log_prob", "future_cost.gate"}


def test_scores_of_given_translations_are_the_translators(demo_runs, tmp_path):
    run = demo_runs / "demo" / "future-cost-1"
    sides = {"en": ["the dog sleeps .", "the cat ."], "de": ["der Hund schläft .", "die Katze ."]}
    for language, lines in sides.items():
        (tmp_path / f"given.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = _run("score", run, "--source", tmp_path / "given.en", "--target", tmp_path / "given.de")
    expected = core_models.load(run).score(sides["en"], sides["de"])
    assert found.split() == [part for one in expected for part in (f"{one.log_prob:.4f}", str(len(one.tokens)))]


def test_evaluate_prints_the_score_table_and_translates_what_is_still_to_do(folders):
    shutil.rmtree(folders[1] / "translations")
    rows = _table(_run("evaluate", *folders[:2], "--test", "test", "--metrics", "chrf,ter", "--samples", 50))
    expected = evaluation.score_table([open_run(path) for path in folders[:2]], "test", ["chrf", "ter"], 50)
    assert [(row["system"], row["metric"], row["score"]) for row in rows] == [
        (row.system, row.metric, f"{row.score:.4f}") for row in expected.itertuples()
    ]


def test_runs_of_one_name_are_scored_each_by_itself(graded_runs, tmp_path):
    other = shutil.copytree(graded_runs[2].folder, tmp_path / "other" / "transformer")
    rows = _table(_run("evaluate", graded_runs[0].folder, other, "--metrics", "bleu", "--samples", 10))
    assert [row["system"] for row in rows] == ["demo/transformer", "other/transformer"]
    assert float(rows[0]["score"]) < float(rows[1]["score"])


@pytest.mark.parametrize("method", ["bootstrap", "randomization", "sign"])
def test_compare_prints_the_comparison_table(graded_runs, method):
    rows = _table(
        _run("compare", *(run.folder for run in graded_runs), "--method", method, "--baseline", "future-cost-1")
    )
    expected = evaluation.comparison_table(graded_runs, "test", "future-cost-1", method)
    assert [(row["system"], row["delta"], row["p_value"], row["p_holm"]) for row in rows] == [
        (row.system, f"{row.delta:.4f}", f"{row.p_value:.4f}", f"{row.p_holm:.4f}") for row in expected.itertuples()
    ]


def test_runs_are_listed_the_broken_with_their_reason(copied_runs):
    (copied_runs / "demo" / "future-cost-1" / "config.yaml").write_text("name: x")
    (copied_runs / "demo" / "future-cost-2" / "weights.safetensors").unlink()
    lines = {
        line.split()[0]: line for line in _run("runs", "--runs", copied_runs).splitlines() if line.startswith("demo/")
    }
    assert "broken: " in lines["demo/future-cost-1"]
    assert "is missing" in lines["demo/future-cost-1"]
    assert " trained" in lines["demo/transformer"]
    assert "tests: test" in lines["demo/transformer"]
    assert "not trained" in lines["demo/future-cost-2"]


def test_systems_are_those_of_the_catalogue_with_their_sizes():
    lines = _run("systems", "--sizes").splitlines()
    assert [line.split()[0] for line in lines] == catalogue()
    assert f"{parameters(build('rnnsearch'))['parameters']:,}" in lines[-1]


def test_a_figure_is_drawn_into_a_file_a_table_or_a_folder(graded_runs, tmp_path):
    runs = [part for run in graded_runs[:2] for part in ("--run", run.folder)]
    assert "length-scores" in _run("figure", "list").split()
    _run("figure", "length-scores", *runs, "--out", tmp_path / "f.pdf", "--set", "scheme=width:5", "--width", "page")
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
    _run("figure", "scores", *runs, "--out", tmp_path / "f.csv", "--set", "metrics=bleu")
    header, *rows = [line.split(",") for line in (tmp_path / "f.csv").read_text().splitlines()]
    drawn = {
        row[header.index("series")]: float(row[header.index("score")]) for row in rows if row[header.index("score")]
    }
    table = evaluation.score_table(graded_runs[:2], "test", ["bleu"])
    assert drawn == pytest.approx(dict(zip(table.system, table.score, strict=True)))
    said = _run("figure", "training-curves", *runs, "--out", tmp_path / "bundle")
    assert {Path(line).suffix for line in said.splitlines()} == {".pdf", ".svg", ".png", ".csv", ".json", ".tex"}
    assert all(Path(line).is_file() for line in said.splitlines())


def test_ways_of_counting_are_listed_without_a_run():
    listed = [line.split()[0] for line in _run("evaluate", "--preset", "list").splitlines()]
    assert listed == list(PRESETS)


def test_an_analysis_of_sentences_has_the_labels_that_the_page_keeps(folders):
    segment_annotations.save(folders[0].parents[1], "test", "domain.txt", b"news\nchat\n" * 15, 30)
    header, *rows = csv.reader(io.StringIO(_run("analyse", "sentences", "--run", folders[0], "--set", "metrics=[ter]")))
    assert [row[header.index("domain")] for row in rows] == ["news", "chat"] * 15
    assert any("TER" in name for name in header)


def test_an_analysis_of_sentences_names_annotations_that_do_not_fit(folders, capsys, monkeypatch):
    file = folders[0].parents[1] / "annotations" / "test" / "domain.txt"
    file.parent.mkdir(parents=True)
    file.write_text("news\n" * 29, encoding="utf-8")
    refused = _refused(capsys, monkeypatch, "analyse", "sentences", "--run", folders[0])
    assert "domain" in refused
    assert "29" in refused
    assert refused.rstrip().endswith("; mend or remove it")


WRONG = [
    (("train", "tranformer", "--data", "DATA", "--out", "OUT"), "did you mean 'transformer'"),
    (("train", "transformer", "--data", "DATA", "--out", "OUT", "--set", "max_epoch=3"), "did you mean 'max_epochs'"),
    (("train", "transformer", "--data", "DATA", "--out", "OUT", "--set", "max_epochs"), "write key=value"),
    (("train", "transformer", "--data", "DATA", "--out", "OUT", "--set", "max_epochs=[1"), "--set"),
    (("train", "transformer", "--data", "NOWHERE", "--out", "OUT"), "there is no such folder"),
    (("train", "transformer", "--data", "DATA", "--out", "RUN"), "a run is here already"),
    (("resume", "NOWHERE"), "no run here"),
    (("average", "NOWHERE"), "no checkpoints to average"),
    (("average", "RUN", "--last", "0"), "at least one"),
    (("translate", "RUN"), "either --test NAME or --input FILE"),
    (("translate", "RUN", "--test", "wmt"), "no test set 'wmt'; there is dev, test"),
    (("translate", "RUN", "--input", "NOWHERE"), "no such file"),
    (("translate", "RUN", "RUN", "--input", "FILE"), "only as an --ensemble"),
    (("translate", "RUN@7", "--input", "FILE"), "has no checkpoint '7'; it has: step-"),
    (("evaluate", "RUN", "--metrics", "bleau"), "there is no metric 'bleau'; did you mean 'bleu'"),
    (("evaluate", "RUN", "RUN"), "named twice"),
    (("compare", "RUN", "RUN2", "--method", "t-test"), "choose bootstrap, randomization, sign"),
    (("compare", "RUN", "RUN2", "--baseline", "nobody"), "'nobody' is not among the runs compared"),
    (("translate", "RUN", "--test", "test", "--prefix", "der"), "--prefix would change nothing beside --test"),
    (("translate", "RUN", "--input", "FILE", "--trees"), "--trees would change nothing beside --input"),
    (
        ("translate", "RUN", "--input", "FILE", "--samples", "2", "--beam", "3", "--n-best", "2"),
        "--beam, --n-best would change nothing beside --samples",
    ),
    (("adequacy", "RUN", "--aligner", "FILE"), "in.txt: no aligner can be read here"),
    (("aligner", "--source", "BLANK", "--target", "FILE", "--out", "a.npz"), "no sentence has words on both sides"),
    (("analyse", "sentences", "--run", "RUN", "--set", "metric=ter"), "there is no option 'metric'; there is metrics"),
    (("analyse", "sentences", "--run", "RUN", "--set", "metrics=bleau"), "Did you mean 'bleu'?"),
    (("bench", "--csv", "no/x.csv"), "--csv no/x.csv: there is no folder no"),
    (("bench-run", "RUN", "--test", "test", "--csv", "no/x.csv"), "--csv no/x.csv: there is no folder no"),
    (("trace", "RUN", "--test", "wmt"), "workbench translate"),
    (("trace", "RUN", "--sentences", "a-b"), "write numbers from 0"),
    (("trace", "RUN", "--sentences", "999"), "has sentences 0 to"),
    (("figure", "length-score", "--run", "RUN"), "did you mean 'length-scores'"),
    (("figure", "length-scores", "--run", "RUN", "--out", "f.doc"), "a figure is written as .pdf"),
    (("figure", "length-scores", "--run", "RUN", "--set", "scheme=gdp"), "Unknown bucket preset 'gdp'"),
    (("figure", "beam-tree", "--run", "RUN", "--set", "colour=red"), "colour"),
    (("figure", "scores"), "no run is chosen"),
    (("figure", "f.pdf", "--rerun", "--sentence", "3"), "beside it give --out, --width"),
    (("data", "prepare", "--train", "FILE", "--dev", "FILE", "--out", "OUT"), "write SOURCE,TARGET or FILE.tsv"),
    (("experiment", "run", "NOWHERE"), "there is no such file"),
    (("experiment", "run", "FILE", "--launcher", "submitit", "--processes", "2"), "are for this machine"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), WRONG, ids=[" ".join(arguments[:2] + arguments[-2:]) for arguments, _ in WRONG]
)
def test_what_is_wrong_is_answered_with_one_sentence_and_exit_code_2(
    demo_runs, tmp_path, capsys, monkeypatch, arguments, message
):
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "blank.txt").write_text(" \n")
    demo = demo_runs / "demo"
    places = {
        "DATA": demo / "data",
        "OUT": tmp_path / "out",
        "RUN": demo / "transformer",
        "RUN2": demo / "future-cost-1",
        "RUN@7": f"{demo / 'transformer'}@7",
        "NOWHERE": tmp_path / "nowhere",
        "FILE": tmp_path / "in.txt",
        "BLANK": tmp_path / "blank.txt",
    }
    monkeypatch.chdir(tmp_path)
    assert message in _refused(capsys, monkeypatch, *(places.get(argument, argument) for argument in arguments))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blank.txt", "in.txt"], "nothing was written"


def test_ctrl_c_during_training_leaves_a_run_that_can_be_resumed(prepared, tmp_path):
    run = tmp_path / "run"
    arguments = [
        "train",
        "transformer:preset=tiny",
        "--data",
        str(prepared.folder),
        "--out",
        str(run),
        "--device",
        "cpu",
        "--set",
        "max_steps=1000000",
        "--set",
        "validate_every=3",
        "--set",
        "log_every=1",
        "--set",
        "batch_tokens=256",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    until = time.monotonic() + 120
    while not list(run.glob("state/step-*/progress.json")):
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=150)
    assert process.returncode == 130
    assert "can be resumed" in said.decode()
    assert "Traceback" not in said.decode()
    assert not [path for path in run.rglob("*") if path.name.endswith(".part") or ".unfinished" in path.name]
    reached = max(event["step"] for event in open_run(run).events())
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("max_steps: 1000000", f"max_steps: {reached + 2}"))
    assert "all steps done" in _run("resume", run, "--device", "cpu")
    steps = [event["step"] for event in open_run(run).events() if event["event"] == "train"]
    assert steps == list(range(1, reached + 3))
