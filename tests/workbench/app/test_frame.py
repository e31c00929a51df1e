"""What every page has: an empty state without runs, the state of the URL, errors as sentences, texts as typed."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core_models.translator import Translation
from tests.paths import ROOT
from tests.workbench.views.app_pages import (
    charts,
    codes,
    open_page,
    read_as_markdown,
    runs_of,
    showing_piece_marks,
    texts,
)
from workbench.app.frame import escape_markdown
from workbench.plotting import theme
from workbench.store.runs import open_run
from workbench.store.translation_writer import write_translations
from workbench.store.translations import TestSet as TestedOn

PAGES = (
    "start",
    "runs",
    "testsets",
    "scores",
    "lengths",
    "words",
    "sentences",
    "adequacy",
    "contrast",
    "rating",
    "what_if",
    "translate",
    "attention",
    "tokens",
    "attribution",
    "beam_trees",
    "beam_sizes",
    "rescoring",
    "future_cost",
    "routing",
    "past_future",
    "content_states",
    "context",
    "documents",
    "curves",
    "gallery",
    "basket",
)
NASTY = "a <b>bold</b> </s> $x$ **not bold** <script>alert(1)</script> :red[no] `code`"


# The claims of a paper need no run; a table of it can draw the chosen ones.
OF_RUNS = {"gallery": {"paper": "duan-2020", "table": "Table 1"}}


@pytest.mark.parametrize("page", PAGES)
def test_without_runs_a_page_says_so_and_gives_the_command(page, runs_root):
    at = open_page(page, **OF_RUNS.get(page, {}))
    assert any("no run" in text for text in texts(at))
    assert f"workbench demo --runs {runs_root}" in codes(at)
    assert not at.sidebar.multiselect


def test_translations_that_other_weights_made_are_to_be_made_again(with_demo):
    run, other = runs_of(with_demo, "transformer", "future-cost-1")
    run.weights.unlink()
    shutil.copy(other.weights, run.weights)
    (run.folder / "translations" / "test").rename(run.folder / "translations" / "second")
    at = open_page("scores", runs=["demo/transformer"])
    assert any("with the weights that they have now" in text for text in texts(at))
    assert codes(at) == [f"workbench translate {run.folder} --test second --save-beams"]
    assert not charts(at)
    table = open_page("runs", runs=["demo/transformer", "demo/future-cost-1"]).dataframe[0].value.set_index("run")
    assert (table.loc["demo/transformer", "tests"], table.loc["demo/future-cost-1", "tests"]) == ("", "test")
    assert table["bleu"].notna().to_dict() == {name: name != "demo/transformer" for name in table.index}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_one_run(page, with_demo):
    at = open_page(page, runs=["demo/future-cost-2"])
    assert at.sidebar.multiselect(key="runs").value == ["demo/future-cost-2"]
    assert not at.error
    assert not at.warning
    assert not showing_piece_marks(at)


@pytest.mark.parametrize("page", ["scores", "lengths", "attention", "tokens", "beam_trees", "future_cost", "curves"])
def test_every_figure_has_its_summary_its_table_and_its_command(page, with_demo):
    at = open_page(page)
    shown = charts(at)
    assert shown
    commands = [code for code in codes(at) if code.startswith("workbench figure ")]
    assert len(commands) == len(shown)
    for ending in ("pdf", "svg", "png", "csv"):
        assert len([button for button in at.get("download_button") if button.proto.label == ending.upper()]) == len(
            shown
        )


def test_the_url_says_what_is_looked_at(with_demo):
    wanted = {
        "runs": ["demo/transformer", "demo/future-cost-2"],
        "test": "test",
        "sentence": "7",
        "baseline": "demo/future-cost-2",
    }
    at = open_page("beam_trees", **wanted)
    assert at.sidebar.multiselect(key="runs").value == wanted["runs"]
    assert at.sidebar.number_input(key="sentence").value == 7
    assert at.sidebar.selectbox(key="baseline").value == "demo/future-cost-2"
    source = runs_of(with_demo, "transformer")[0].translations("test").test_set.sources[7]
    assert source in texts(at)


def test_what_the_url_cannot_have_is_said_and_the_default_shown(with_demo):
    at = open_page("start", runs=["demo/transformer", "demo/gone"], sentence="99", nonsense="1")
    said = " ".join(warning.value for warning in at.warning)
    assert escape_markdown("'demo/gone'") in said
    assert escape_markdown("'99'") in said
    assert at.sidebar.multiselect(key="runs").value == ["demo/transformer"]
    assert at.sidebar.number_input(key="sentence").value == 0


def test_a_sentence_is_found_by_a_word(with_demo):
    at = open_page("beam_trees")
    sources = runs_of(with_demo, "transformer")[0].translations("test").test_set.sources
    word = next(word for word in sources[11].split() if len(word) > 3)
    at.text_input(key="find").set_value(word).run()
    found = at.dataframe[0].value
    assert 11 in set(found["sentence"])
    assert all(word in sources[number] or word in texts(at) for number in found["sentence"])


def test_a_broken_run_is_shown_with_its_reason_and_stops_nothing(with_demo):
    broken = with_demo / "broken"
    broken.mkdir()
    (broken / "config.yaml").write_text("name: [unclosed", encoding="utf-8")
    at = open_page("runs")
    assert "broken" in texts(at)
    assert any(escape_markdown("not readable as YAML") in error.value for error in at.error)
    assert "broken" not in at.sidebar.multiselect(key="runs").options
    assert charts(open_page("scores"))


def test_the_baseline_is_the_first_run_where_no_test_set_is_translated_yet(with_demo):
    chosen = ["new/future-cost-1", "new/transformer"]
    for name in chosen:
        without = shutil.ignore_patterns("translations", "traces")
        shutil.copytree(with_demo / "demo" / name.partition("/")[2], with_demo / name, ignore=without)
    view = open_page("start", runs=chosen).session_state["_frame"].view
    assert (view.runs, view.baseline) == (("new/transformer", "new/future-cost-1"), "new/transformer")


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("one has no traces; make them: workbench trace '/my workbench runs/one'", "trace '/my workbench runs/one'"),
        ("/my workbench runs/one: no run here", ""),
        ("a run is here already; go on with it (workbench resume one) or choose another folder", ""),
    ],
)
def test_only_a_command_is_taken_out_of_an_error(said, command):
    at = AppTest.from_string(f"from workbench.app import frame\nframe.show_error(ValueError({said!r}))").run()
    assert codes(at) == ([f"workbench {command}"] if command else [])
    assert at.error[0].value == escape_markdown(said.removesuffix(f" workbench {command}"))


@pytest.mark.parametrize("page", ["start", "gallery"])
def test_commands_quote_a_runs_folder_with_a_blank(page, tmp_path, monkeypatch):
    root = tmp_path / "my runs"
    root.mkdir()
    monkeypatch.setenv("WORKBENCH_RUNS", str(root))
    at = open_page(page, **OF_RUNS.get(page, {}))
    lines = [line for code in codes(at) for line in code.splitlines() if str(root) in line]
    assert lines
    assert all(Path(shlex.split(line)[-1]).is_relative_to(root) for line in lines)


def test_a_test_set_that_is_not_translated_is_asked_for(with_demo):
    run = with_demo / "new" / "transformer"
    shutil.copytree(with_demo / "demo" / "transformer", run, ignore=shutil.ignore_patterns("translations", "traces"))
    at = open_page("lengths", runs=["new/transformer"])
    assert codes(at) == [f"workbench translate {run} --test test --save-beams"]
    assert not charts(at)


@pytest.fixture
def nasty(with_demo):
    """A run whose name and whose texts are made of markup."""
    folder = with_demo / "odd" / "**x** $y$ <b>"
    shutil.copytree(with_demo / "demo" / "future-cost-2", folder)
    run = open_run(folder)
    before = run.translations("test")
    words = NASTY.split()
    tree = {**before.tree(0), "word": (words * len(before.tree(0)["word"]))[: len(before.tree(0)["word"])]}
    detail = before.details[0]
    told = Translation(
        NASTY, (words * 40)[: len(detail["tokens"])], [], -1.0, -1.0, detail["token_log_probs"], True, [], tree=tree
    )
    kept = json.dumps([path.name for path in (folder / "traces" / "test").iterdir()])
    shutil.copytree(folder / "traces", with_demo / "kept")
    write_translations(run, TestedOn("test", [NASTY], [NASTY], None), [told], {}, 1.0)
    shutil.copytree(with_demo / "kept", folder / "traces", dirs_exist_ok=True)
    shutil.rmtree(with_demo / "kept")
    (folder / "traces" / "test" / "index.json").touch()  # else they are the traces of the translations before
    assert "index.json" in kept
    return "odd/**x** $y$ <b>"


@pytest.mark.parametrize("page", PAGES)
def test_texts_show_as_typed(page, nasty):
    at = open_page(page, runs=[nasty])
    for text in read_as_markdown(at):
        assert not any(
            piece in text for piece in ("<b>", "**x**", "$y$", "$x$", "**not", "<script", "</s>", ":red[")
        ), text
    if page in ("beam_trees", "future_cost"):
        assert NASTY in texts(at)
    for chart in charts(at):
        shown = [str(text) for trace in chart["data"] for text in trace.get("text") or ()]
        shown += [
            axis["ticktext"]
            for key, axis in chart["layout"].items()
            if key.startswith("xaxis") and axis.get("ticktext")
        ]
        assert not any("<script" in text or "$x$" in text for text in map(str, shown))


@pytest.mark.slow
def test_only_pages_that_ask_a_model_load_torch(with_demo):
    """Translate, Attention, Tokens and Attribution do: Start opens at once."""
    script = (
        "import sys; from tests.workbench.views.app_pages import open_page\n"
        "for page in ('start', 'runs', 'scores', 'lengths', 'beam_trees', 'beam_sizes', 'future_cost', 'curves'):\n"
        "    open_page(page)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


@pytest.mark.parametrize(
    "text", ["**a**", "$x$", "</s>", "<b>", ":red[x]", "`a`", "[a](b)", "a_b_c", "# head", "~~a~~"]
)
def test_escaped_text_has_no_markup_left(text):
    escaped = escape_markdown(text)
    assert escaped.replace("\\", "") == text
    assert all(
        escaped[place - 1] == "\\"
        for place, character in enumerate(escaped)
        if not (character.isalnum() or character in " \\")
    )


def test_the_chip_of_a_run_has_its_color_whatever_its_name(with_demo):
    named = 'a"] {} <b> é'
    shutil.copytree(with_demo / "demo" / "future-cost-1", with_demo / "demo" / named, copy_function=os.link)
    at = open_page("scores", runs=["demo/transformer", "demo/future-cost-2", f"demo/{named}"])
    style = next(element.proto.body for element in at.get("html") if "data-tag" in element.proto.body)
    assert named not in style
    assert r"demo/a\22 \5d \20 \7b \7d \20 \3c b\3e \20 é" in style
    for name in ("demo/transformer", "demo/future-cost-2"):
        color = theme.style_of(name.rpartition("/")[2]).colour
        assert f'[aria-label="{name}"] {{background-color: {color}; color: {theme.text_on(color)}}}' in style
    kept = json.loads((with_demo / ".run-styles.json").read_text())["lines"]
    assert {"demo/transformer", "demo/future-cost-1", f"demo/{named}"} <= kept.keys()
