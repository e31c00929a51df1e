"""Studies of human ratings on disk: drawn without replacement, blind, kept by rater, out and in again as CSV."""

import csv
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from workbench import cli
from workbench.store import rating_studies as rating
from workbench.store.external import import_translations, read_test_set
from workbench.store.rating_studies import Mark
from workbench.store.runs import RunError, open_runs
from workbench.views.human_evaluation import tables as rating_tables

pytestmark = pytest.mark.long

LINES = 12
SOURCES = [f"quelle {n} das das ende" for n in range(LINES)]
SYSTEMS = {
    "good": [f"source {n} the the end" for n in range(LINES)],
    "bad": [f"source {n} the" for n in range(LINES)],
    "twin": [f"source {n} the the end" if n % 2 else f"spring {n}" for n in range(LINES)],  # every other line is good's
}


@pytest.fixture
def root(tmp_path) -> Path:
    files = {"source": SOURCES, **SYSTEMS}
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    test_set = read_test_set("news", tmp_path / "source")
    import_translations(
        tmp_path / "runs" / "outside", test_set, tmp_path / "source", {name: tmp_path / name for name in SYSTEMS}
    )
    return tmp_path / "runs"


@pytest.fixture
def study(root) -> rating.Study:
    runs = open_runs([root / "outside" / name for name in SYSTEMS])
    return rating.create(root, "blind", runs, "news", sentences=8, seed=3)


def _rate(study: rating.Study, rater: str, sentences: int) -> rating.Study:
    """Rate the first sentences as one would: long outputs 5, others 2 with the last source word left out."""
    study = rating.enter(study, rater)
    for item in study.items[:sentences]:
        found = study.translations_by_letter(rater, item)
        said = {letter: Mark(5) if "end" in text else Mark(2, under=(4,)) for letter, text in found.items()}
        rating.save(study, rater, {item.sentence: said})
    return study


def test_sentences_are_drawn_once_each_and_again_the_same(study, root):
    drawn = [item.sentence for item in study.items]
    assert len(set(drawn)) == 8
    assert [item.source for item in study.items] == [SOURCES[n] for n in drawn]
    runs = open_runs([root / "outside" / name for name in SYSTEMS])
    again = rating.create(root, "again", runs, "news", sentences=8, seed=3)
    other = rating.create(root, "other", runs, "news", sentences=8, seed=4)
    assert [item.sentence for item in again.items] == drawn != [item.sentence for item in other.items]
    assert rating.studies(root) == ["again", "blind", "other"]
    assert rating.open_study(root, "blind") == study


def test_letters_are_shuffled_by_rater_and_stay(study, root):
    ann, bob = rating.enter(study, "ann"), rating.enter(study, "bob")
    assert rating.enter(bob, "ann").letters["ann"] == ann.letters["ann"]
    assert bob.letters["ann"] != bob.letters["bob"]
    firsts = {group[0] for rater in bob.letters.values() for groups in rater.values() for group in groups[:1]}
    assert firsts == {f"outside/{name}" for name in SYSTEMS}  # no letter belongs to a system
    for item in study.items:
        shown = ann.translations_by_letter("ann", item)
        assert len(set(shown.values())) == len(shown)  # the same output is rated once
        for letter, text in shown.items():
            systems = ann.systems_of_letter("ann", item.sentence, letter)
            assert {SYSTEMS[Path(name).name][item.sentence] for name in systems} == {text}
        assert sum(len(ann.systems_of_letter("ann", item.sentence, letter)) for letter in shown) == 3


def test_what_a_rater_gets_names_no_system(study):
    study = _rate(study, "ann", 3)
    written = (study.folder / "ann.csv").read_text(encoding="utf-8")
    assert not any(name in written or name in rating_tables.form(study, "ann").to_csv() for name in SYSTEMS)
    assert "outside/good" in (study.folder / "study.json").read_text(encoding="utf-8")


def test_ratings_are_kept_beside_each_other(study):
    study = _rate(study, "ann", 3)
    item = study.items[0]
    first = next(iter(study.translations_by_letter("ann", item)))
    rating.save(study, "ann", {item.sentence: {first: Mark(1, (0, 3), (1,))}})
    kept = rating.marks(study, "ann")
    assert len(kept) == 3
    assert kept[item.sentence][first] == Mark(1, (0, 3), (1,))
    assert rating.is_rated(study, "ann", item, kept)
    assert not rating.is_rated(study, "ann", study.items[3], kept)
    assert not list(study.folder.glob("*.part"))


def test_a_run_that_translates_again_changes_no_study(study, root):
    (root / "outside" / "good" / "translations" / "news" / "hypotheses.txt").write_text("x\n" * LINES)
    item = rating.open_study(root, "blind").items[0]
    assert item.translations["outside/good"] == SYSTEMS["good"][item.sentence]


def test_results_are_those_of_the_ratings(study):
    study = _rate(_rate(study, "ann", 8), "bob", 3)
    found = rating_tables.results(study, "outside/bad")
    table = found.intervals.set_index(["system", "measure"])["score"]
    odd = sum(item.sentence % 2 for item in study.items)
    assert table["outside/good", "quality"] == 5
    assert table["outside/bad", "quality"] == 2
    assert table["outside/twin", "quality"] == pytest.approx((5 * odd + 2 * (8 - odd)) / 8)
    assert table["outside/bad", "under-translated (%)"] == pytest.approx(100 / 5)
    assert table["outside/good", "over-translated (%)"] == 0
    assert found.differences["system"].unique().tolist() == ["outside/good", "outside/twin"]
    assert found.agreement.set_index("measure").loc["quality", "alpha"] == pytest.approx(1)
    assert found.counted.startswith("2 raters, 8 of 8 sentences of news, 33 ratings")


def test_csv_goes_out_and_in_again(study, root, tmp_path):
    study = _rate(_rate(study, "ann", 4), "bob", 2)
    out = rating_tables.export(study)
    out.to_csv(tmp_path / "out.csv", index=False)
    runs = open_runs([root / "outside" / name for name in SYSTEMS])
    other = rating.create(root, "elsewhere", runs, "news", sentences=8, seed=3)
    brought = rating_tables.bring_in(other, tmp_path / "out.csv", "out.csv")
    assert set(brought) == {"ann", "bob"}
    there = rating_tables.export(rating.open_study(root, "elsewhere"))
    order = ["rater", "sentence", "system"]
    pd.testing.assert_frame_equal(
        there.sort_values(order, ignore_index=True), out.sort_values(order, ignore_index=True)
    )


def test_a_form_is_filled_in_elsewhere(study, tmp_path, root):
    form = rating_tables.form(study, "eve")
    assert form["quality"].eq("").all()
    form.loc[:4, ["quality", "over", "under"]] = ["3", "0 2", ""]
    form.to_csv(tmp_path / "form.csv", index=False, quoting=csv.QUOTE_ALL)
    study = rating.open_study(root, "blind")
    assert rating_tables.bring_in(study, tmp_path / "form.csv", "form.csv") == {"eve": 5}
    assert {mark for given in rating.marks(study, "eve").values() for mark in given.values()} == {Mark(3, (0, 2))}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("ann,{n},A,6,,", "table.csv:2: the quality 6 is none of 1, 2, 3, 4, 5"),
        ("ann,{n},A,3,5,", "table.csv:2: sentence {n} has words 0 to 4, not 5"),
        ("ann,{n},A,good,,", "table.csv:2: invalid literal"),
        ("ann,{n},Z,3,,", "ann was shown no translation 'Z' of sentence {n}"),
        ("ann,99,A,3,,", "sentence 99 is not among the 8 of this study"),
        ("../ann,{n},A,3,,", "table.csv:2: the rater '../ann' is used as a file name"),
        ("ann,{n},A,3,,\nann,{n},A,4,,", "table.csv:3: ann rates the same translation of sentence {n} a second time"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_whole(study, tmp_path, row, said):
    n = study.items[0].sentence
    file = tmp_path / "table.csv"
    file.write_text(f"rater,sentence,letter,quality,over,under\n{row.format(n=n)}\n", encoding="utf-8")
    with pytest.raises(RunError) as refused:
        rating_tables.bring_in(study, file, "table.csv")
    assert said.format(n=n) in str(refused.value)
    assert not list(study.folder.glob("*.csv"))
    assert rating.open_study(study.folder.parents[1], study.name).raters == []


def test_what_cannot_be_is_a_sentence(study, root, tmp_path):
    runs = open_runs([root / "outside" / name for name in SYSTEMS])
    with pytest.raises(RunError, match="'blind' already"):
        rating.create(root, "blind", runs, "news", 5)
    with pytest.raises(RunError, match="draw 1 to 12, not 13"):
        rating.create(root, "more", runs, "news", 13)
    with pytest.raises(RunError, match="is used as a file name"):
        rating.create(root, "../up", runs, "news", 5)
    with pytest.raises(RunError, match="no study 'gone' below"):
        rating.open_study(root, "gone")
    with pytest.raises(RunError, match="nobody has rated"):
        rating_tables.results(study)
    (study.folder / "study.json").write_text("[1", encoding="utf-8")
    with pytest.raises(RunError, match="not a readable study"):
        rating.open_study(root, "blind")


@pytest.mark.long
def test_the_commands_do_all_of_it(root, tmp_path):
    def run(*words: object) -> str:
        found = CliRunner().invoke(cli.app, ["rating", *map(str, words), "--runs", str(root)])
        assert found.exit_code == 0, f"{found.output}\n{found.exception!r}"
        return found.stdout

    named = [word for name in SYSTEMS for word in ("--run", root / "outside" / name)]
    run("new", "cli", *named, "--test", "news", "--sentences", 6)
    _rate(rating.open_study(root, "cli"), "ann", 6)
    assert "6 sentences of news, raters: ann" in run("list")
    run("export", "cli", "--out", tmp_path / "ann.csv")
    brought = run("import", "cli", tmp_path / "ann.csv")
    rated = sum(map(len, rating.marks(rating.open_study(root, "cli"), "ann").values()))
    assert brought == f"ann: {rated} ratings\n"
    run("export", "cli", "--out", tmp_path / "form.csv", "--form", "bob")
    assert run("import", "cli", tmp_path / "form.csv").endswith("nothing is imported, since no line has a quality\n")
    assert len(pd.read_csv(tmp_path / "ann.csv")) == 6 * len(SYSTEMS)
    scores = run("results", "cli", "--baseline", "outside/bad")
    assert "outside/good\tquality\t5.0000" in scores
    drawn = CliRunner().invoke(
        cli.app,
        [
            "figure",
            "human-rating",
            *map(str, named),
            "--test",
            "news",
            "--option",
            "study=cli",
            "--out",
            str(tmp_path / "f.csv"),
        ],
    )
    assert drawn.exit_code == 0, drawn.output
    assert "5.0" in (tmp_path / "f.csv").read_text()
