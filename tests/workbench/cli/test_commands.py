"""The command line: what each command leaves behind and prints, and quick help."""

import csv
import gzip
import io
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import core_models
from analyses.scores import PRESETS
from core_models.system_builder import build, parameters
from core_models.system_catalogue import SYSTEMS, catalogue
from workbench import cli
from workbench.cli.shared import baseline_name
from workbench.evaluation import scoring
from workbench.store import segment_annotations
from workbench.store.runs import open_run, open_runs

COMMANDS = {
    *("train", "resume", "translate", "score", "trace", "rerank", "beam-sweep"),
    *("evaluate", "compare", "adequacy", "contrastive-eval", "rating"),
    *("analyze", "figure", "export", "experiment", "benchmark", "data", "runs", "open", "demo", "app"),
}


def invoke(*arguments: object, input: str | None = None) -> str:
    """Standard output of a command that must end well."""
    found = CliRunner().invoke(cli.app, [str(argument) for argument in arguments], input=input)
    assert found.exit_code == 0, f"{found.output}\n{found.exception!r}"
    return found.stdout


def _table(text: str) -> list[dict[str, str]]:
    header, *rows = [line.split("\t") for line in text.strip().split("\n")]
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.fixture
def folders(copied_runs) -> list[Path]:
    return [copied_runs / "demo" / name for name in ("transformer", "future-cost-1", "future-cost-2")]


@pytest.mark.timing
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


def test_the_version_is_that_of_the_package():
    assert invoke("--version") == f"workbench {version('nmt-workbench')}\n"


def test_one_group_a_topic():
    assert set(typer.main.get_command(cli.app).commands) == COMMANDS
    assert len(COMMANDS) <= 22


def test_controlled_text_can_be_prepared_from_files_archives_tables_and_documents(tmp_path):
    text, out = tmp_path / "text", tmp_path / "prepared"
    said = invoke("data", "controlled", "--out", text, "--sentences", 120, "--dev", 10, "--test", 10, "--seed", 3)
    assert said.startswith("Oracles of the test text")
    assert "bleu ceiling" in said
    again = tmp_path / "again"
    invoke("data", "controlled", "--out", again, "--sentences", 120, "--dev", 10, "--test", 10, "--seed", 3)
    assert {path.name: path.read_bytes() for path in text.iterdir()} == {
        path.name: path.read_bytes() for path in again.iterdir()
    }

    for language in ("en", "de"):
        (text / f"train.{language}.gz").write_bytes(gzip.compress((text / f"train.{language}").read_bytes()))
    pairs = zip(*((text / f"dev.{language}").read_text().splitlines() for language in ("en", "de")), strict=True)
    (text / "table.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    said = invoke(
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
        "--vocab-size",
        120,
        "--languages",
        "en-de",
        "--out",
        out,
    )
    assert "pieces, left out: 0 too long, 0 empty" in said
    assert said.endswith("test set whole: 10 sentences\ntest set table: 10 sentences\n")
    from core_models.text.prepared import Prepared

    prepared = Prepared.open(out)
    assert prepared.test_names == ["dev", "whole", "table"]
    assert prepared.test("whole").documents == (text / "test.docids").read_text().splitlines()
    assert prepared.test("table").documents is None
    assert prepared.test("table").sources == prepared.test("dev").sources
    assert (prepared.manifest["source_language"], prepared.manifest["target_language"]) == ("en", "de")
    assert len(prepared.source_vocabulary) == 120


def test_a_file_and_standard_input_are_translated_line_by_line(demo_runs, tmp_path):
    run = demo_runs / "demo" / "transformer"
    lines = ["the dog sleeps .", "a cat .", "ein Größenwahn .", "x"]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    invoke("translate", run, "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt")
    found = (tmp_path / "out.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert found == [one.text for one in core_models.load(run).translate(lines)]
    printed = invoke("translate", run, "--input", "-", input="".join(f"{line}\n" for line in lines))
    assert printed.removesuffix("\n").split("\n") == found
    best = invoke("translate", run, "--input", tmp_path / "in.txt", "--n-best", 2, "--beam", 2)
    expected = core_models.load(run).translate(lines, beam=2, n_best=2)
    lists = [(found, *found.n_best) for found in expected]
    assert best.removesuffix("\n").split("\n") == [
        f"{number}\t{one.score:.4f}\t{one.text}" for number, several in enumerate(lists) for one in several
    ]
    assert best == invoke("translate", run, "--input", tmp_path / "in.txt", "--search", "n_best=2", "--beam", 2)


@pytest.mark.parametrize("options", [(), ("--n-best", 2, "--beam", 2), ("--num-samples", 2)])
def test_an_empty_line_has_an_empty_translation(demo_runs, options):
    """A system would make up a sentence for it."""
    result = CliRunner().invoke(
        cli.app, ["translate", str(demo_runs / "demo" / "transformer"), "--input", "-", *map(str, options)],
        input="the dog sleeps .\n \n\na cat .\n",
    )  # fmt: skip
    assert "2 of 4 lines are empty, and so are their translations" in result.stderr
    if not options:
        assert [bool(line) for line in result.stdout.split("\n")] == [True, False, False, True, False]
        return
    texts = {(number, text) for number, _, text in (line.split("\t") for line in result.stdout.splitlines())}
    assert {number for number, text in texts if not text} == {"1", "2"}
    assert {number for number, text in texts if text} == {"0", "3"}


def test_a_run_whose_search_asks_for_several_prints_them(copied_runs, tmp_path):
    run = copied_runs / "demo" / "transformer"
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("n_best: 1", "n_best: 2"))
    (tmp_path / "in.txt").write_text("the dog sleeps .\n", encoding="utf-8")
    printed = invoke("translate", run, "--input", tmp_path / "in.txt")
    assert printed == invoke("translate", run, "--input", tmp_path / "in.txt", "--n-best", 2)
    assert printed.startswith("0\t")


def test_prefix_and_ensemble_reach_the_search(demo_runs, tmp_path):
    runs = [demo_runs / "demo" / name for name in ("transformer", "future-cost-2")]
    (tmp_path / "in.txt").write_text("the dog sleeps .\n", encoding="utf-8")
    begun = invoke("translate", runs[0], "--input", tmp_path / "in.txt", "--prefix", "der Hund")
    assert begun.startswith("der Hund")
    together = invoke("translate", *runs, "--input", tmp_path / "in.txt", "--ensemble")
    assert together.strip() == core_models.load(runs).translate(["the dog sleeps ."])[0].text.strip()


def test_a_test_set_is_translated_with_trees_and_traced_in_part(folders):
    shutil.rmtree(folders[2] / "traces")
    invoke("translate", folders[2], "--test", "dev", "--save-beams", "--beam", 2)
    run = open_run(folders[2])
    assert run.translations("dev").has_trees
    assert run.translations("dev").meta["search"]["beam"] == 2
    invoke("trace", folders[2], "--test", "dev", "--arrays", "log_prob,future_cost.*", "--sentences", "0-2,5")
    assert list(run.traces("dev")) == [0, 1, 2, 5]
    kept = {"log_prob", "future_cost.log_prob", "future_cost.rank", "future_cost.gate"}
    assert set(run.traces("dev").names) == kept


def test_scores_of_given_translations_are_the_translators(demo_runs, tmp_path):
    run = demo_runs / "demo" / "future-cost-1"
    sides = {"en": ["the dog sleeps .", "the cat ."], "de": ["der Hund schläft .", "die Katze ."]}
    for language, lines in sides.items():
        (tmp_path / f"given.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = invoke("score", run, "--source", tmp_path / "given.en", "--target", tmp_path / "given.de")
    expected = core_models.load(run).score(sides["en"], sides["de"])
    assert found.split() == [part for one in expected for part in (f"{one.log_prob:.4f}", str(len(one.tokens)))]


def test_evaluate_prints_the_score_table_and_translates_what_is_still_to_do(folders):
    shutil.rmtree(folders[1] / "translations")
    rows = _table(invoke("evaluate", *folders[:2], "--test", "test", "--metrics", "chrf,ter", "--n-resamples", 50))
    expected = scoring.score_table([open_run(path) for path in folders[:2]], "test", ["chrf", "ter"], 50)
    assert [(row["system"], row["metric"], row["score"]) for row in rows] == [
        (row.system, row.metric, f"{row.score:.4f}") for row in expected.itertuples()
    ]


def test_runs_of_one_name_are_scored_each_by_itself(graded_runs, tmp_path):
    other = shutil.copytree(graded_runs[2].folder, tmp_path / "other" / "transformer")
    rows = _table(invoke("evaluate", graded_runs[0].folder, other, "--metrics", "bleu", "--n-resamples", 40))
    assert [row["system"] for row in rows] == ["demo/transformer", "other/transformer"]
    assert float(rows[0]["score"]) < float(rows[1]["score"])


@pytest.mark.parametrize("method", ["bootstrap", "randomization", "sign"])
def test_compare_prints_the_comparison_table(graded_runs, method):
    rows = _table(
        invoke("compare", *(run.folder for run in graded_runs), "--method", method, "--baseline", "future-cost-1")
    )
    expected = scoring.comparison_table(graded_runs, "test", "future-cost-1", method)
    assert [(row["system"], row["delta"], row["p_value"], row["p_holm"]) for row in rows] == [
        (row.system, f"{row.delta:.4f}", _p(row.p_value), _p(row.p_holm)) for row in expected.itertuples()
    ]


def _p(value: float) -> str:
    """Never zero: that of the sign test may be tiny."""
    return f"{value:.1e}" if value < 0.00005 else f"{value:.4f}"


@pytest.mark.parametrize("name", ["demo/future-cost-2", "future-cost-2", "{folder}", "runs/demo/future-cost-2"])
def test_a_baseline_is_a_run_by_its_name_or_path(copied_runs, name):
    paths = [copied_runs / "demo" / one for one in ("transformer", "future-cost-2")]
    runs = [replace(open_run(path), name=f"demo/{path.name}") for path in paths]
    assert baseline_name(None, paths, runs) == "demo/transformer"
    assert baseline_name(name.format(folder=paths[1]), paths, runs) == "demo/future-cost-2"


def test_a_baseline_that_several_runs_may_be_is_refused(graded_runs, capsys):
    runs = [replace(run, name=f"{number}/transformer") for number, run in enumerate(graded_runs)]
    with pytest.raises(SystemExit):
        baseline_name("transformer", [run.folder for run in graded_runs], runs)
    said = "--baseline transformer: this may be 0/transformer or 1/transformer or 2/transformer; give more of its path"
    assert said in capsys.readouterr().err


def test_a_baseline_that_is_another_run_of_the_same_name_is_refused(copied_runs, capsys):
    other = shutil.copytree(copied_runs / "demo" / "transformer", copied_runs / "other" / "transformer")
    paths = [copied_runs / "demo" / one for one in ("transformer", "future-cost-1")]
    with pytest.raises(SystemExit):
        baseline_name(str(other), paths, open_runs(paths))
    assert "it is not among the runs: transformer, future-cost-1" in capsys.readouterr().err


def test_grids_and_folders_of_jobs_beside_runs_are_no_runs(graded_runs):
    group = graded_runs[0].folder.parent
    (group / "em-routing.yaml").write_text("name: em-routing\n")
    (group / "jobs").mkdir()
    paths = [path for path in sorted(group.iterdir()) if not path.name.startswith(".")]
    assert len(_table(invoke("evaluate", *paths, "--metrics", "chrf", "--n-resamples", 40))) == 3


def test_runs_are_listed_the_broken_with_their_reason(copied_runs):
    (copied_runs / "demo" / "future-cost-1" / "config.yaml").write_text("name: x")
    (copied_runs / "demo" / "future-cost-2" / "weights.safetensors").unlink()
    lines = {
        line.split()[0]: line for line in invoke("runs", "--runs", copied_runs).splitlines() if line.startswith("demo/")
    }
    assert "broken: " in lines["demo/future-cost-1"]
    assert "is missing" in lines["demo/future-cost-1"]
    assert " trained" in lines["demo/transformer"]
    assert "tests: test" in lines["demo/transformer"]
    assert "not trained" in lines["demo/future-cost-2"]


@pytest.mark.slow
def test_systems_are_those_of_the_catalogue_with_their_sizes():
    lines = invoke("experiment", "systems", "--sizes").splitlines()
    assert [line.split()[0] for line in lines] == catalogue()
    told = dict(zip(catalogue(), lines, strict=True))
    assert f"{parameters(build('rnnsearch'))['parameters']:,}" in told["rnnsearch"]
    begins = [line.index(SYSTEMS[line.split()[0]].title) for line in lines]
    assert set(begins) == {max(map(len, catalogue())) + 2}, "the second column begins behind the longest name"


@pytest.mark.slow
def test_a_figure_is_drawn_into_a_file_a_table_or_a_folder(graded_runs, tmp_path):
    runs = [part for run in graded_runs[:2] for part in ("--run", run.folder)]
    assert "length-scores" in invoke("figure", "list").split()
    invoke(
        "figure", "length-scores", *runs, "--out", tmp_path / "f.pdf", "--option", "scheme=width:5", "--width", "page"
    )
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
    invoke("figure", "scores", *runs, "--out", tmp_path / "f.csv", "--option", "metrics=bleu")
    header, *rows = [line.split(",") for line in (tmp_path / "f.csv").read_text().splitlines()]
    drawn = {
        row[header.index("series")]: float(row[header.index("score")]) for row in rows if row[header.index("score")]
    }
    table = scoring.score_table(graded_runs[:2], "test", ["bleu"])
    assert drawn == pytest.approx(dict(zip(table.system, table.score, strict=True)))
    said = invoke("figure", "training-curves", *runs, "--out", tmp_path / "bundle")
    assert {Path(line).suffix for line in said.splitlines()} == {".pdf", ".svg", ".png", ".csv", ".json", ".tex"}
    assert all(Path(line).is_file() for line in said.splitlines())


def test_ways_of_counting_are_listed_without_a_run():
    *presets, note = invoke("evaluate", "--preset", "list").splitlines()
    assert [line.split()[0] for line in presets] == list(PRESETS)
    assert note.startswith("TER ignores case")


def test_an_analysis_of_sentences_has_the_labels_that_the_page_keeps(folders):
    segment_annotations.save(folders[0].parents[1], "test", "domain.txt", b"news\nchat\n" * 15, 30)
    header, *rows = csv.reader(
        io.StringIO(invoke("analyze", "sentences", "--run", folders[0], "--option", "metrics=[ter]"))
    )
    assert [row[header.index("domain")] for row in rows] == ["news", "chat"] * 15
    assert any("TER" in name for name in header)
