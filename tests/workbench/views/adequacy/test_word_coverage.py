"""Left out and repeated words of runs: references have none; a run that leaves out words has those; pages show it."""

import pytest
from typer.testing import CliRunner

from tests.workbench.papers.written_runs import seeded
from workbench.cli import app
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import RunError, open_run
from workbench.views.adequacy.word_coverage import (
    COUNTERPARTS,
    WHOLE,
    by_sentence,
    exact_table,
    over_seeds_table,
    statistics,
)


def _with(run, lines):
    folder = run.folder / "translations" / "test"
    (folder / "hypotheses.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return open_run(run.folder)


@pytest.fixture
def runs(copied_runs):
    """A run that writes the references, and one that leaves out the word before the last of each."""
    first, second = (open_run(copied_runs / "demo" / name) for name in ("transformer", "future-cost-1"))
    references = first.translations("test").test_set.references
    shorter = [" ".join([*line.split()[:-2], line.split()[-1]]) for line in references]
    return _with(first, references), _with(second, shorter)


def test_the_references_leave_out_nothing_and_repeat_nothing(runs):
    right, _ = runs
    assert all(not one.left_out | one.repeated | one.foreign for one in by_sentence(right, "test"))


def test_what_was_counted_is_kept_until_other_translations_come(runs):
    _, shorter = runs
    found = by_sentence(shorter, "test")
    assert by_sentence(shorter, "test") == found
    assert COUNTERPARTS.path(shorter, "test").is_file()
    lines = shorter.translations("test").hypotheses
    other = _with(shorter, ["", *lines[1:]])
    again = by_sentence(other, "test")
    assert len(again[0].left_out) == again[0].linked
    assert again[1:] == found[1:]


def test_table_figure_and_command_say_what_was_counted(runs):
    right, shorter = runs
    lost = sum(len(one.left_out) for one in by_sentence(shorter, "test"))
    wanted = sum(one.linked for one in by_sentence(right, "test"))
    assert lost
    table = exact_table(runs, "test", right.name).set_index(["measure", "system", "bucket"]).sort_index()
    row = table.loc[("left out", shorter.name, WHOLE)]
    assert row.percent == row.delta == pytest.approx(100 * lost / wanted)
    assert table.loc[("left out", right.name, WHOLE), "percent"] == 0
    lengths = table.loc[("left out", right.name)].drop(WHOLE)
    assert lengths.n.sum() == len(right.translations("test"))
    request = Request(runs, "test")
    figure = draw("true-adequacy", request)
    drawn = figure.table[(figure.table.series == "future-cost-1") & (figure.table.mark == "line")]
    by_bucket = table.loc[("left out", shorter.name)].percent.drop(WHOLE)
    assert dict(zip(drawn.bucket, drawn.score, strict=True)) == pytest.approx(by_bucket.to_dict())
    assert "Buckets of fewer than 100 sentences are grey" in figure.caption
    assert "translated as another word, by counting words" in figure.caption
    assert f"transformer 0.00 %, future-cost-1 {row.percent:.2f} %" in figure.caption
    done = CliRunner().invoke(app, ["adequacy", "coverage", str(right.folder), str(shorter.folder)])
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 1 + len(table)


def test_runs_of_a_system_are_its_seeds(runs):
    """A second seed that leaves out nothing halves what the system leaves out; one seed is tested as a run is."""
    right, shorter = runs
    (row,) = (row for row in over_seeds_table(runs, "test").itertuples() if row.percent)
    exact = exact_table(runs, "test", right.name).set_index(["measure", "system", "bucket"])
    single = exact.loc[("left out", shorter.name, WHOLE)]
    assert (row.measure, row.system, row.seeds) == ("left out", shorter.system, 1)
    assert (row.percent, row.delta, row.p_value) == pytest.approx((single.percent, single.delta, single.p_value))
    copies = [
        _with(seeded(run, run.folder.with_name(f"{run.folder.name}-2"), 2), right.translations("test").hypotheses)
        for run in runs
    ]
    both = over_seeds_table((*runs, *copies), "test").set_index(["measure", "system"])
    assert both.loc[("left out", shorter.system), "delta"] == pytest.approx(single.delta / 2)
    assert both.seeds.tolist() == [2] * 4
    assert (row.form, set(both.form)) == ("sentences", {"seeds and sentences"})
    folders = [str(run.folder) for run in (*runs, *copies)]
    done = CliRunner().invoke(app, ["adequacy", "coverage", *folders, "--over-seeds"])
    assert len(done.stdout.splitlines()) == 1 + len(both)
    with pytest.raises(RunError, match=r"is not the only run of transformer.* with seed 1"):
        over_seeds_table((*runs, right), "test")
    alone = ["adequacy", "coverage", str(right.folder), "--over-seeds"]
    refused = CliRunner().invoke(app, [*alone, "--baseline", right.name])
    assert refused.exit_code == 2


def test_one_run_has_no_difference(runs):
    table = exact_table(runs[1:], "test", runs[1].name)
    assert table.delta.isna().all()
    assert len(statistics(runs[1:], "test", "repeated")) == 1


def test_what_cannot_be_counted_is_said(runs):
    with pytest.raises(RunError, match="measure 'missed': choose left out, repeated"):
        draw("true-adequacy", Request(runs, "test", options={"measure": "missed"}))
    done = CliRunner().invoke(app, ["adequacy", "coverage", str(runs[0].folder), "--baseline", "x"])
    assert done.exit_code == 2
    path = runs[1].folder / "translations" / "test" / "references.txt"
    path.write_text(path.read_text(encoding="utf-8").replace(" ", " x ", 1), encoding="utf-8")
    with pytest.raises(RunError, match="were tested on different versions of test"):
        exact_table((runs[0], open_run(runs[1].folder)), "test", runs[0].name)
    (runs[0].folder / "translations" / "test" / "truth.jsonl").unlink()
    with pytest.raises(RunError, match="has no truth"):
        by_sentence(open_run(runs[0].folder), "test")
