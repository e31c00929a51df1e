"""Pronouns and commitments of translations against the truth: references are right, the commonest form is the bound."""

import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.workbench.views.app_pages import axis_titles, charts, open_page, traces
from workbench.cli import app
from workbench.store.runs import RunError, open_run
from workbench.views.adequacy.controlled_choices import MAJORITY, choices_table
from workbench.views.adequacy.gold_figures import TITLES
from workbench.views.adequacy.plots import choices


def _with(run, lines):
    folder = run.folder / "translations" / "test"
    (folder / "hypotheses.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "meta.json").touch()  # by its time pages know that the translations are others
    return open_run(run.folder)


@pytest.fixture
def truthful(copied_runs):
    """A run whose translations are the references, and one that writes the commonest pronoun for every other."""
    first, second = (open_run(copied_runs / "demo" / name) for name in ("transformer", "future-cost-1"))
    found = first.translations("test")
    references = found.test_set.references
    right = [reference.split()[one["target"]] for reference, truth in zip(references, found.truth, strict=True)
             for one in truth["pronouns"]]  # fmt: skip
    commonest = max(sorted(set(right)), key=right.count)
    lines = []
    for reference, truth in zip(references, found.truth, strict=True):
        words = reference.split()
        for one in truth["pronouns"]:
            words[one["target"]] = commonest
        lines.append(" ".join(words))
    return [_with(first, references), _with(second, lines)], right.count(commonest) / len(right)


def test_references_are_right_and_the_commonest_form_reaches_its_share(truthful):
    runs, bound = truthful
    table = choices_table(runs, "test").set_index(["choice", "system"])
    assert (table.xs(runs[0].name, level="system")["share"] == 1).all()
    assert 0 < bound < 1
    assert table.loc[("pronoun", MAJORITY), "share"] == pytest.approx(bound)
    assert table.loc[("pronoun", runs[1].name), "share"] <= 1
    assert table.loc[("commitment", runs[1].name), "wrong"] == 0
    told = table.loc[("pronoun", runs[1].name)]
    assert told["wrong"] > 0
    assert told["right"] + told["wrong"] + told["undecidable"] == told["n"]


def test_split_by_distance_the_counts_add_up(truthful):
    runs, _ = truthful
    whole = choices_table(runs, "test").set_index(["choice", "system"])[["n", "right", "wrong", "undecidable"]]
    split = choices_table(runs, "test", "distance")
    pd.testing.assert_frame_equal(split.groupby(["choice", "system"], sort=False)[list(whole)].sum(), whole)
    reached = choices_table(runs, "test", "reach")
    pd.testing.assert_frame_equal(reached.groupby(["choice", "system"], sort=False)[list(whole)].sum(), whole)
    assert set(reached["reach"]) <= {"1", "2", "3", "4 to 6", "7 and more"}
    with pytest.raises(RunError, match="--by colour: pronouns have no such column; choose distance or reach"):
        choices_table(runs, "test", "colour")


def test_runs_of_different_versions_of_a_test_set_are_refused(truthful):
    runs, _ = truthful
    sources = runs[1].folder / "translations" / "test" / "sources.txt"
    sources.write_text(sources.read_text(encoding="utf-8").replace("the", "a", 1), encoding="utf-8")
    with pytest.raises(RunError, match="were tested on different versions of test"):
        choices_table([runs[0], open_run(runs[1].folder)], "test")


def test_what_cannot_be_told_has_a_row_that_can_be_read(truthful, copied_runs):
    """By the word taken, of a system that babbles: the counts add up, and no row is called nan."""
    runs = [*truthful[0], open_run(copied_runs / "demo" / "future-cost-2")]
    counts = ["n", "right", "wrong", "undecidable"]
    whole = choices_table(runs, "test").set_index(["choice", "system"])[counts]
    split = choices_table(runs, "test", "taken")
    pd.testing.assert_frame_equal(split.groupby(["choice", "system"], sort=False)[counts].sum(), whole)
    unknown = split[split["taken"] == "(none)"]
    assert runs[2].name in set(unknown["system"])
    assert MAJORITY not in set(unknown["system"]), "it takes the commonest"
    assert (unknown["undecidable"] == unknown["n"]).all()
    result = CliRunner().invoke(app, ["adequacy", "pronouns", *(str(run.folder) for run in runs), "--by", "taken"])
    printed = [line.split("\t")[1] for line in result.stdout.splitlines()[1:]]
    assert printed == split["taken"].tolist()
    figure = choices(split, "taken", TITLES, MAJORITY)
    assert any(text.startswith("(none) (n = ") for text in figure.panels[0].x.texts)


def test_systems_that_are_right_equally_often_have_no_order():
    def summary(*rights: int) -> str:
        rows = [("commitment", name, 10, right, 10 - right, 0, "1") for name, right in zip("ab", rights, strict=True)]
        columns = ["choice", "system", "n", "right", "wrong", "undecidable", "reach"]
        table = pd.DataFrame(rows, columns=columns).assign(share=0.5, low=0.4, high=0.6)
        return choices(table, "reach", TITLES).summary

    assert summary(10, 10) == "The share of right commitments is the same for all systems: 10 of 10."
    assert summary(9, 7) == "Most commitments are right in a (9 of 10), fewest in b (7 of 10)."


@pytest.mark.slow
def test_the_command_prints_it_and_the_page_draws_it(truthful, monkeypatch):
    runs, _ = truthful
    result = CliRunner().invoke(app, ["adequacy", "pronouns", *(str(run.folder) for run in runs), "--by", "distance"])
    assert result.exit_code == 0, result.output
    printed = [line.split("\t") for line in result.stdout.splitlines()]
    split = choices_table(runs, "test", "distance")
    assert printed[0] == list(split)
    assert [row[2] for row in printed[1:]] == list(split["system"])
    monkeypatch.setenv("WORKBENCH_RUNS", str(runs[0].folder.parents[1]))
    at = open_page("adequacy")
    drawn = next(chart for chart in charts(at) if "right (%)" in axis_titles(chart))
    split = choices_table(runs, "test", "reach")
    named = {"transformer": split[split["system"] == runs[0].name], MAJORITY: split[split["system"] == MAJORITY]}
    for name, rows in named.items():
        shown = [float(y) for trace in traces(drawn, name) for y in trace["y"]]
        assert shown == pytest.approx([100 * share for share in rows["share"].dropna()])
