"""An exported figure drawn again has the table it had; where a run has changed since, that is said."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from workbench import cli
from workbench.export.bundle import write_bundle
from workbench.export.files import save, table_digest
from workbench.export.redraw import draw_again, read_made
from workbench.export.report import report
from workbench.figures import from_spec, spec
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.plotting.grammar import Figure
from workbench.store import segment_annotations
from workbench.store.runs import RunError, open_run, open_runs

ENDINGS = (".pdf", ".svg", ".png", ".json")


def _request(root: Path) -> Request:
    runs = tuple(open_run(f"demo/{name}", root) for name in ("transformer", "future-cost-2"))
    return Request(runs, "test", baseline="demo/future-cost-2", options={"scheme": "width:5", "metric": "chrf"})


@pytest.fixture(scope="module")
def drawn(demo_runs) -> Figure:
    """Differences to a baseline that is not the first run."""
    return draw("length-differences", _request(demo_runs))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_figure_drawn_again_has_the_same_table(drawn, demo_runs, tmp_path, ending):
    file = save(drawn, tmp_path / f"old{ending}", width="aaai-column")
    again = draw_again(file, demo_runs)
    assert again.same
    assert table_digest(again.drawn.figure) == table_digest(drawn) == again.made.table_sha256
    assert "the same" in again.message
    new = save(again.drawn.figure, tmp_path / f"new{ending}", again.made.paper.width, again.made.paper.grey)
    assert new.read_bytes() == file.read_bytes()
    assert again.made.paper.width == (None if ending == ".json" else "aaai-column")


def test_a_changed_run_is_named(copied_runs, tmp_path):
    request = replace(_request(copied_runs), sentence=3, options={}, baseline=None)
    file = save(draw("output-lengths", request), tmp_path / "old.svg")
    hypotheses = copied_runs / "demo" / "transformer" / "translations" / "test" / "hypotheses.txt"
    lines = hypotheses.read_text(encoding="utf-8").splitlines()
    hypotheses.write_text("".join(f"{line} mehr\n" for line in lines), encoding="utf-8")
    again = draw_again(file, copied_runs)
    assert not again.same
    folder = copied_runs / "demo" / "transformer"
    assert again.changes == (f"demo/transformer ({folder}) has another translations",)


def test_where_another_run_of_the_name_cannot_be_drawn_that_is_said(copied_runs, tmp_path):
    request = replace(_request(copied_runs), sentence=3, options={}, baseline=None)
    file = save(draw("output-lengths", request), tmp_path / "old.svg")
    run = copied_runs / "demo" / "transformer"
    shutil.rmtree(run / "translations" / "test")
    with pytest.raises(RunError, match=r"test(?!.*another model)"):
        draw_again(file, copied_runs)
    shutil.copyfile(copied_runs / "demo" / "future-cost-2" / "weights.safetensors", run / "weights.safetensors")
    with pytest.raises(RunError, match=r"transformer\) has another model than the figure was drawn of"):
        draw_again(file, copied_runs)


def test_a_file_says_how_its_numbers_came_about(demo_runs, tmp_path):
    runs = (open_run("demo/transformer", demo_runs),)
    made = json.loads(save(draw("scores", Request(runs)), tmp_path / "scores.json").read_bytes())
    said = made["provenance"]
    assert said["recipe"] == {"drawing": "scores", "runs": ["demo/transformer"], "among": [], "test": "test",
                              "sentence": 0,
                              "baseline": None, "options": {}, "width": "", "font": "sans"}  # fmt: skip
    assert said["resampling_seed"] == 12345  # sacreBLEU's default
    assert said["signatures"]["BLEU"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert set(said["digests"]["demo/transformer"]) == {"model", "translations", "training log"}
    assert made["versions"]["sacrebleu"]
    tree = draw("beam-tree", Request(runs, sentence=2))
    assert tree.provenance["recipe"]["sentence"] == 2
    assert "resampling_seed" not in tree.provenance, "a tree shows no interval"


def test_a_run_is_found_by_the_last_part_of_its_name_and_by_its_model(copied_runs, tmp_path):
    (run,) = open_runs([copied_runs / "demo" / "future-cost-1"])
    file = save(draw("training-curves", Request((run,))), tmp_path / "curves.json")
    assert read_made(file).recipe.runs == ("future-cost-1",)
    assert draw_again(file, copied_runs).same
    other = copied_runs / "other" / "future-cost-1"
    shutil.copytree(copied_runs / "demo" / "future-cost-2", other)
    again = draw_again(file, copied_runs)
    assert again.same
    assert again.drawn.request.runs[0].folder == copied_runs / "demo" / "future-cost-1"
    shutil.rmtree(other)
    shutil.copytree(copied_runs / "demo" / "future-cost-1", other)
    with pytest.raises(RunError, match=r"2 runs below .* could be 'future-cost-1': demo/future-cost-1, other/future"):
        draw_again(file, copied_runs)


def test_a_checkpoint_is_drawn_again_as_itself(demo_runs, tmp_path):
    run = open_run("demo/transformer", demo_runs)
    step = next((run.folder / "checkpoints").glob("*.safetensors")).stem.removeprefix("step-")
    request = Request((open_run(f"demo/transformer@{step}", demo_runs),))
    file = save(draw("training-curves", request), tmp_path / "curves.svg")
    (found,) = draw_again(file, demo_runs).drawn.request.runs
    assert found.step == step


def test_what_is_missing_is_one_sentence(drawn, demo_runs, tmp_path):
    file = save(drawn, tmp_path / "old.json")
    with pytest.raises(RunError, match=r"there is no run 'demo/transformer' below .*nowhere"):
        draw_again(file, tmp_path / "nowhere")
    made = json.loads(file.read_bytes())
    made["provenance"]["recipe"]["drawing"] = "length-difference"
    file.write_text(json.dumps(made))
    with pytest.raises(RunError, match="no figure is called 'length-difference'; did you mean 'length-differences'"):
        draw_again(file, demo_runs)
    made["provenance"]["recipe"]["drawing"] = ["length-differences"]
    file.write_text(json.dumps(made))
    with pytest.raises(RunError, match=r"old\.json: recipe\.drawing: input should be a valid string"):
        draw_again(file, demo_runs)
    made["provenance"]["recipe"] |= {"drawing": "training-curves", "runs": ["../../elsewhere"]}
    file.write_text(json.dumps(made))
    with pytest.raises(RunError, match="there is no run"):
        draw_again(file, demo_runs)


@pytest.fixture
def labelled(demo_runs, tmp_path) -> tuple[Path, Request]:
    """A file of labels in a folder of this machine alone, and what was drawn with it."""
    path = tmp_path / "home-of-alice" / "domain.txt"
    path.parent.mkdir()
    path.write_text("".join("news\n" if row % 3 else "talks\n" for row in range(30)))
    return path, Request((open_run("demo/transformer", demo_runs),), options={"labels": str(path)})


@pytest.mark.parametrize("ending", ENDINGS)
def test_of_a_file_that_was_drawn_with_the_name_and_the_digest_travel(labelled, demo_runs, tmp_path, ending):
    path, request = labelled
    file = save(draw("length-scores", request), tmp_path / f"old{ending}")
    made = read_made(file)
    assert "home-of-alice" not in made.model_dump_json()
    assert b"home-of-alice" not in file.read_bytes()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert made.recipe.options == {"labels": {"file": "domain.txt", "sha256": digest}}
    with pytest.raises(RunError, match=r"drawn with the file 'domain.txt'; name it: --file labels=FILE"):
        draw_again(file, demo_runs)
    again = draw_again(file, demo_runs, {"labels": path.rename(tmp_path / "moved.txt")})
    assert again.same
    with pytest.raises(RunError, match=r"--file links: .*there is labels"):
        draw_again(file, demo_runs, {"links": path})


def test_annotations_beside_the_runs_are_found_and_another_file_is_said(labelled, copied_runs, tmp_path):
    path, request = labelled
    file = save(draw("length-scores", request), tmp_path / "old.json")
    kept = segment_annotations.save(copied_runs, "test", "domain.txt", path.read_bytes(), 30)
    assert draw_again(file, copied_runs).same
    kept.write_bytes(path.read_bytes().replace(b"talks", b"news!"))
    with pytest.raises(RunError, match="name it: --file labels=FILE"):
        draw_again(file, copied_runs)
    again = draw_again(file, copied_runs, {"labels": kept})
    assert (again.same, again.changes) == (False, ("the file of labels is another one",))


def test_a_path_in_a_file_of_somebody_else_is_not_read(labelled, demo_runs, tmp_path):
    path, request = labelled
    file = save(draw("length-scores", request), tmp_path / "old.json")
    made = json.loads(file.read_bytes())
    made["provenance"]["recipe"]["options"]["labels"] = str(path)
    file.write_text(json.dumps(made))
    with pytest.raises(RunError, match="name it: --file labels=FILE"):
        draw_again(file, demo_runs)


@pytest.mark.slow
def test_commands_take_the_file_by_its_option(labelled, demo_runs, tmp_path):
    path, request = labelled
    one = from_spec.DrawnFigure(spec.recipe_of("length-scores", request), request, draw("length-scores", request))
    file = save(one.figure, tmp_path / "old.json")
    write_bundle([one], tmp_path / "paper")
    manifest = tmp_path / "paper" / "manifest.json"
    assert "home-of-alice" not in manifest.read_text() + report("Report", request.runs, "test", [one])
    rerun = ["figure", "redraw", str(file), "--runs", str(demo_runs)]
    bundle = ["export", "bundle", str(tmp_path / "again"), "--collection", str(manifest), "--runs", str(demo_runs)]
    for words in (rerun, bundle):
        assert isinstance(CliRunner().invoke(cli.app, words).exception, RunError)
        told = CliRunner().invoke(cli.app, [*words, "--file", f"labels={path}"])
        assert told.exit_code == 0, told.output
    for name in ("length-scores.pdf", "length-scores.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "paper" / name).read_bytes()


def _without_origin(folder: Path, ending: str) -> Path:
    """A file of this kind that somebody else's program wrote."""
    path = folder / f"plain{ending}"
    if ending == ".json":
        path.write_text('{"provenance": {"runs": "gdr-1"}}')
    elif ending == ".svg":
        path.write_text('<svg xmlns="http://www.w3.org/2000/svg"><title>x</title></svg>')
    else:
        Image.new("RGB", (2, 2)).save(path)
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_carries_nothing_says_so(tmp_path, ending):
    with pytest.raises(RunError, match="carries nothing that it could be drawn again from"):
        read_made(_without_origin(tmp_path, ending))
    broken = tmp_path / f"broken{ending}"
    broken.write_bytes(b"\x89PNG\r\n%PDF-1.4 {<")
    with pytest.raises(RunError, match=rf"broken\{ending}: not readable as"):
        read_made(broken)


def test_the_command_writes_the_same_kind_of_file_and_says_what_it_found(drawn, demo_runs, tmp_path):
    old = save(drawn, tmp_path / "old.pdf", grey=True)
    told = CliRunner().invoke(cli.app, ["figure", "redraw", str(old), "--runs", str(demo_runs)])
    assert told.exit_code == 0, told.output
    assert "the table drawn is the same as then" in told.stdout
    assert (tmp_path / "old-again.pdf").read_bytes() == old.read_bytes()


def _text_of(path: Path) -> str:
    """An SVG without its metadata, which name the runs as the command does."""
    return re.sub(r"<metadata>.*</metadata>", "", path.read_text(), flags=re.DOTALL)


@pytest.mark.slow
def test_a_font_is_part_of_recipe_command_and_file(drawn, demo_runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = spec.recipe_of("length-differences", _request(demo_runs)).model_copy(update={"font": "times"})
    of_recipe = from_spec.draw(spec.Recipe.model_validate_json(recipe.model_dump_json()), demo_runs)
    wanted = save(of_recipe.figure, tmp_path / "times.pdf").read_bytes()
    assert b"STIXGeneral" in wanted or b"TimesNewRoman" in wanted
    assert b"STIXGeneral" not in save(drawn, tmp_path / "sans.pdf").read_bytes()
    told = CliRunner().invoke(cli.app, [*shlex.split(of_recipe.command)[1:], "--out", "old.svg"])
    assert told.exit_code == 0, told.output
    save(of_recipe.figure, tmp_path / "wanted.svg")
    assert _text_of(Path("old.svg")) == _text_of(Path("wanted.svg"))
    save(of_recipe.figure, tmp_path / "times.json")
    for name in ("times.pdf", "times.json"):
        told = CliRunner().invoke(cli.app, ["figure", "redraw", name, "--runs", str(demo_runs), "--out", "again.pdf"])
        assert told.exit_code == 0, told.output
        assert Path("again.pdf").read_bytes() == wanted, name
    told = CliRunner().invoke(cli.app, ["figure", "scores", "--font", "timse"])
    assert "did you mean 'times'" in told.stderr


def test_the_command_beside_a_figure_draws_it(drawn, demo_runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = spec.figure_command("length-differences", _request(demo_runs))
    told = CliRunner().invoke(cli.app, [*shlex.split(words)[1:-1], "out.csv"])
    assert told.exit_code == 0, told.output
    assert Path("out.csv").read_bytes() == save(drawn, tmp_path / "twin.csv").read_bytes()


def test_a_file_that_cannot_be_drawn_again_ends_the_command_with_one_sentence(tmp_path, capsys, monkeypatch):
    plain = _without_origin(tmp_path, ".svg")
    for words, said in (
        ((plain,), "carries nothing that it could be drawn again from"),
        ((tmp_path / "gone.pdf",), "no such file"),
        ((tmp_path / "notes.txt",), "a figure is drawn again from .pdf, .svg, .png, .json, not from .txt"),
        ((plain, "--run", tmp_path), "No such option: --run"),
    ):
        monkeypatch.setattr(sys, "argv", ["workbench", "figure", "redraw", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert stopped.value.code == 2
        assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [plain.name]
