"""Parts that another package brings by entry points: used like our own, refused by a sentence, harmful to nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

EXAMPLE = ROOT / "tests" / "example_plugin"
BROKEN = """
[project]
name = "broken-parts"
version = "0.1"
[project.entry-points."nmt_workbench.mechanisms"]
future_cost = "output_scale:OutputScale"
gone = "no_such_module:Gone"
[project.entry-points."nmt_workbench.systems"]
half = "broken_parts:HALF"
[project.entry-points."nmt_workbench.figures"]
scores = "broken_parts:draw"
falls = "broken_parts:draw"
empty = "broken_parts:nothing"
[project.entry-points."nmt_workbench.analyses"]
number = "broken_parts:NUMBER"
falls = "broken_parts:draw"
empty = "broken_parts:nothing"
leaves = "broken_parts:leave"
[project.entry-points."nmt_workbench.pages"]
start = "broken_parts:draw"
"""
BROKEN_MODULE = """
from core_models.system_catalogue import Entry
HALF = Entry("Half", "nowhere", {"mechanisms": [{"gone": {}}]})
NUMBER = 3
def draw(request=None):
    "Fails."
    raise AssertionError("drawn")
def nothing(request):
    "Gives nothing."
    return None
def leave(request):
    "Ends the process."
    raise SystemExit(0)
"""


def _install(source: Path, target: Path) -> None:
    """What pip makes of a package of one module, with setuptools, which PyTorch requires: nothing is downloaded."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--no-index",
         "--no-build-isolation", "--no-compile", "--target", target, source],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The example, and a package whose parts cannot join, in a folder of their own."""
    folder = tmp_path_factory.mktemp("plugins")
    shutil.copytree(EXAMPLE, folder / "example", ignore=shutil.ignore_patterns("__pycache__"))
    broken = folder / "broken"
    broken.mkdir()
    (broken / "pyproject.toml").write_text(BROKEN, encoding="utf-8")
    (broken / "broken_parts.py").write_text(BROKEN_MODULE, encoding="utf-8")
    for source in (folder / "example", broken):
        _install(source, folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def used(installed, demo_runs, tmp_path_factory) -> dict:
    """What a fresh process says that has both packages on its path."""
    out = tmp_path_factory.mktemp("used")
    paths = os.pathsep.join(filter(None, [str(installed), str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths, "WORKBENCH_RUNS": str(demo_runs), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", USE, str(demo_runs), str(out)],
        env=environment, capture_output=True, text=True, cwd=out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads((out / "said.json").read_text(encoding="utf-8"))


USE = """
import contextlib, io, json, os, sys
from pathlib import Path
import torch
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner
import core_models
from core_models.system_catalogue import catalogue
from tests.core_models.laws import assert_stepping_is_forcing, random_system
from tests.workbench.views.app_pages import SCRIPT, charts, open_page, switch, texts
from workbench import cli
from workbench.store.runs import open_run
from workbench.experiments.train import new_run, train

torch.set_num_threads(1)
root, out, said = Path(sys.argv[1]), Path(sys.argv[2]), {"catalogue": catalogue()}
data = open_run(root / "demo" / "transformer").config.data_folder(root / "demo" / "transformer")
run = new_run(out / "scaled", "transformer-scaled:preset=tiny", data,
              {"max_steps": 1, "warmup": 1, "learning_rate": 1e-2, "batch_tokens": 200})
train(run, device="cpu")
trained = core_models.load(run.folder)
(scale,) = [value for name, value in trained.systems[0].named_parameters() if name.endswith("output_scale.scale")]
said["moved"] = float((scale - 1).abs().max())
assert_stepping_is_forcing(random_system("transformer-scaled"))

def command(*words):
    found = CliRunner().invoke(cli.app, [str(word) for word in words])
    return [found.exit_code, found.output]

runs = [word for name in ("transformer", "future-cost-1") for word in ("--run", root / "demo" / name)]
said["listed"] = command("analyze", "list")
said["analysed"] = command("analyze", "output-words", *runs)
said["drawn"] = command("figure", "output-words", *runs, "--out", out / "words.csv")

def ended(*words):
    sys.argv, heard = ["workbench", *map(str, words)], io.StringIO()
    with contextlib.redirect_stderr(heard):
        try:
            cli.main()
            return [None, heard.getvalue()]
        except BaseException as error:
            return [error.code if isinstance(error, SystemExit) else repr(error), heard.getvalue()]

failing = {name: ("analyze", name, *runs) for name in ("falls", "empty", "leaves")}
failing |= {f"figure {name}": ("figure", name, *runs, "--out", out / "f.pdf") for name in ("falls", "empty")}
said["failing"] = {name: ended(*words) for name, words in failing.items()}
os.environ["WORKBENCH_DEBUG"] = "1"
said["debugged"] = ended(*failing["falls"])
del os.environ["WORKBENCH_DEBUG"]

at = open_page("start")
said["start"] = {"tables": [table.value.to_dict("list") for table in at.dataframe],
                 "warnings": [warning.value.replace(chr(92), "") for warning in at.warning]}
at = switch(AppTest.from_file(str(SCRIPT), default_timeout=60), "output_words").run()
said["page"] = {"exceptions": [error.message for error in at.exception], "title": at.title[0].value,
                "texts": texts(at), "charts": len(charts(at))}
(out / "said.json").write_text(json.dumps(said, default=str))
"""


@pytest.mark.exhaustive
def test_a_mechanism_of_another_package_is_built_and_trained(used):
    assert "transformer-scaled" in used["catalogue"]
    assert used["moved"] > 0


@pytest.mark.slow
def test_an_analysis_is_listed_and_gives_a_table(used, demo_runs):
    assert used["listed"][0] == 0
    listed = dict(line.split(maxsplit=1) for line in used["listed"][1].splitlines())
    assert listed["output-words"] == "Words a sentence that each system wrote."
    assert "sentences" in listed  # ours
    code, printed = used["analysed"]
    assert code == 0
    header, *rows = printed.splitlines()
    assert header == "system,words"
    lines = (demo_runs / "demo/transformer/translations/test/hypotheses.txt").read_text("utf-8").splitlines()
    words = dict(row.split(",") for row in rows)
    assert float(words["transformer"]) == pytest.approx(sum(len(line.split()) for line in lines) / len(lines))


def test_a_figure_is_drawn_by_the_command_and_on_the_page(used):
    assert used["drawn"][0] == 0, used["drawn"][1]
    page = used["page"]
    assert (page["exceptions"], page["title"], page["charts"]) == ([], "Output words", 1)
    assert "Made by a plug-in." in page["texts"]


def test_a_part_that_fails_is_a_sentence_with_its_name_and_package(used):
    why = {
        "falls": ("analysis 'falls'", "AssertionError: drawn"),
        "empty": ("analysis 'empty'", "TypeError: gives a NoneType, not a DataFrame"),
        "leaves": ("analysis 'leaves'", "SystemExit: 0"),
        "figure falls": ("figure 'falls'", "AssertionError: drawn"),
        "figure empty": ("figure 'empty'", "TypeError: gives a NoneType, not a Figure"),
    }
    assert used["failing"].keys() == why.keys()
    for name, (code, said) in used["failing"].items():
        part, cause = why[name]
        expected = (
            f"workbench: the {part} of the plug-in broken-parts 0.1 failed: {cause}; WORKBENCH_DEBUG=1 shows where"
        )
        assert (code, said.strip()) == (2, expected)
    assert "RunError" in used["debugged"][0]


def test_what_cannot_join_is_named_on_start_with_its_reason(used):
    (table,) = [table for table in used["start"]["tables"] if "joined" in table]
    joined = dict(zip(zip(table["kind"], table["name"], strict=True), table["joined"], strict=True))
    assert joined == {
        ("mechanisms", "output_scale"): True,
        ("systems", "transformer-scaled"): True,
        ("analyses", "output-words"): True,
        ("figures", "output-words"): True,
        ("pages", "output_words"): True,
        ("mechanisms", "future_cost"): False,
        ("mechanisms", "gone"): False,
        ("systems", "half"): False,
        ("figures", "scores"): False,
        ("figures", "falls"): True,
        ("figures", "empty"): True,
        ("analyses", "falls"): True,
        ("analyses", "empty"): True,
        ("analyses", "leaves"): True,
        ("analyses", "number"): False,
        ("pages", "start"): False,
    }
    said = "\n".join(used["start"]["warnings"])
    assert "broken-parts 0.1, mechanisms, future_cost: the name 'future_cost' is taken" in said
    assert "no_such_module:Gone cannot be imported: ModuleNotFoundError: No module named 'no_such_module'" in said
    assert "broken_parts:HALF has the mechanism 'gone', which is not here" in said
    assert "figures, scores: the name 'scores' is taken" in said
    assert "broken_parts:NUMBER is no function" in said
    assert "pages, start: the name 'start' is taken" in said
