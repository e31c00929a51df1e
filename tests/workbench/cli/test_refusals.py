"""The command line where something is wrong: one sentence that names it and says what to do, exit code 2."""

import sys

import pytest

from workbench import cli


def refused(capsys, monkeypatch, *arguments: object) -> str:
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


def test_an_analysis_of_sentences_names_annotations_that_do_not_fit(copied_runs, capsys, monkeypatch):
    file = copied_runs / "annotations" / "test" / "domain.txt"
    file.parent.mkdir(parents=True)
    file.write_text("news\n" * 29, encoding="utf-8")
    said = refused(capsys, monkeypatch, "analyze", "sentences", "--run", copied_runs / "demo" / "transformer")
    assert "domain" in said
    assert "29" in said
    assert said.endswith("; mend or remove it")


WRONG = [
    (("train", "tranformer", "--data", "DATA", "--out", "OUT"), "did you mean 'transformer'"),
    (
        ("train", "transformer", "--data", "DATA", "--out", "OUT", "--config", "max_epoch=3"),
        "did you mean 'max_epochs'",
    ),
    (("train", "transformer", "--data", "DATA", "--out", "OUT", "--config", "max_epochs"), "write key=value"),
    (("train", "transformer", "--data", "DATA", "--out", "OUT", "--config", "max_epochs=[1"), "--config"),
    (("train", "transformer", "--data", "NOWHERE", "--out", "OUT"), "there is no such folder"),
    (("train", "transformer", "--data", "DATA", "--out", "RUN"), "a run is here already"),
    (("resume", "NOWHERE"), "no run here"),
    (("runs", "average", "NOWHERE"), "no run here"),
    (("runs", "average", "RUN", "--last", "0"), "at least one"),
    (("translate", "RUN"), "either --test NAME or --input FILE"),
    (("translate", "RUN", "--test", "wmt"), "no test set 'wmt'; there is dev, test"),
    (("translate", "RUN", "--input", "NOWHERE"), "no such file"),
    (("translate", "RUN", "RUN", "--input", "FILE"), "only as an --ensemble"),
    (("translate", "RUN@7", "--input", "FILE"), "has no checkpoint '7'; it has: step-"),
    (("evaluate", "RUN", "--metrics", "bleau"), "there is no metric 'bleau'; did you mean 'bleu'"),
    (("evaluate", "RUN", "RUN"), "named twice"),
    (("compare", "RUN", "RUN2", "--method", "t-test"), "there is no test 't-test' of a difference; "),
    (("compare", "RUN", "RUN2", "--baseline", "nobody"), "--baseline nobody: it is not among the runs"),
    (("translate", "RUN", "--test", "test", "--prefix", "der"), "--prefix would change nothing beside --test"),
    (("translate", "RUN", "--input", "FILE", "--search", "test_loss=none"), "no losses of PAST or FUTURE layers"),
    (("evaluate", "RUN", "--search", "test_loss=nbest"), "input should be 'as_built', 'none' or 'step_mean_prob'"),
    (("translate", "RUN", "--input", "FILE", "--save-beams"), "--save-beams would change nothing beside --input"),
    (
        ("translate", "RUN", "--input", "FILE", "--num-samples", "2", "--beam", "3", "--n-best", "2"),
        "--beam, --n-best would change nothing beside --num-samples",
    ),
    (
        ("translate", "RUN", "--input", "FILE", "--temperature", "0.5", "--seed", "0"),
        "--temperature, --seed would change nothing beside --input without --num-samples",
    ),
    (("translate", "RUN", "--test", "test", "--seed", "3"), "--seed would change nothing beside --test"),
    (("benchmark", "scale-seed-intervals", "--deviations", "a,b"), "--deviations 'a,b': write numbers, with commas"),
    (("beam-sweep", "RUN", "--sizes", "1,0"), "--sizes '1,0': write whole numbers from 1, with commas between"),
    (("evaluate", "RUN", "--engine", "marian"), "--engine marian: choose workbench or ctranslate2"),
    (
        ("data", "prepare", "--languages", "english", "--train", "FILE,FILE", "--dev", "FILE,FILE", "--out", "OUT"),
        "--languages 'english': write SOURCE-TARGET, such as en-de",
    ),
    (("figure", "paper-claims"), "paper-claims draws a paper; name it: --option paper=NAME"),
    (("figure", "paper-table"), "name both: --option paper=NAME --option table=NAME"),
    (
        ("figure", "ablation", "--option", "option=capsules"),
        "no experiment is named; name it: --option experiment=NAME",
    ),
    (("adequacy", "RUN", "--aligner", "FILE"), "in.txt: no aligner can be read here"),
    (
        ("data", "train-aligner", "--source", "BLANK", "--target", "FILE", "--out", "a.npz"),
        "no sentence has words on both sides",
    ),
    (
        ("analyze", "sentences", "--run", "RUN", "--option", "metric=ter"),
        "there is no option 'metric' of sentences; there is metrics",
    ),
    (("analyze", "sentences", "--run", "RUN", "--option", "metrics=bleau"), "Did you mean 'bleu'?"),
    (("benchmark", "speed", "--csv", "no/x.csv"), "--csv no/x.csv: there is no folder no"),
    (("benchmark", "end-to-end", "RUN", "--test", "test", "--csv", "no/x.csv"), "no/x.csv: there is no folder no"),
    (("trace", "RUN", "--test", "wmt"), "workbench translate"),
    (("trace", "RUN", "--sentences", "a-b"), "write numbers from 0"),
    (("trace", "RUN", "--sentences", "999"), "has sentences 0 to"),
    (("figure", "length-score", "--run", "RUN"), "did you mean 'length-scores'"),
    (("figure", "length-scores", "--run", "RUN", "--out", "f.doc"), "a figure is written as .pdf"),
    (("figure", "length-scores", "--run", "RUN", "--option", "scheme=gdp"), "Unknown bucket preset 'gdp'"),
    (("figure", "beam-tree", "--run", "RUN", "--option", "colour=red"), "colour"),
    (("figure", "scores"), "no run is chosen; name at least one (--run RUN)"),
    (("figure", "score", "--help"), "did you mean 'scores'"),
    (("analyze", "sentences"), "no run is chosen; name at least one (--run RUN)"),
    (("analyze", "sentence", "--help"), "no analysis is called 'sentence'"),
    (("evaluate", "DEMO"), "no run here: config.yaml is missing; there are runs below it, such as "),
    (
        ("open", "fairseq", "NOWHERE", "--as", "x", "--source-dict", "NOWHERE", "--target-dict", "NOWHERE"),
        "no such checkpoint",
    ),
    (("rating", "new", "", "--run", "RUN"), "the study has no name: give one"),
    (("data", "prepare", "--train", "FILE", "--dev", "FILE", "--out", "OUT"), "write SOURCE,TARGET or FILE.tsv"),
    (
        ("data", "prepare", "--train", "FILE,FILE", "--dev", "FILE,FILE", "--out", "DATA"),
        "holds prepared text, which runs may be trained on; give another --out, or --replace",
    ),
    (("experiment", "run", "NOWHERE"), "there is no such file"),
    (("experiment", "run", "FILE", "--launcher", "submitit", "--processes", "2"), "are for this machine"),
    (("translate", "RUN", "--test", "test", "--launcher", "pbs"), "--launcher 'pbs': choose local or submitit"),
    (("trace", "RUN", "--launcher", "submitit", "--job", "x"), "write key=value"),
    (("trace", "RUN", "--gpus", "1", "--tasks", "3"), "--tasks, --gpus would change nothing here; they are for a"),
    (("experiment", "run", "FILE", "--partition", "main"), "--partition would change nothing here"),
    (("translate", "RUN", "--input", "FILE", "--launcher", "submitit"), "--input would change nothing beside"),
    (
        ("evaluate", "RUN", "--launcher", "submitit", "--engine", "ctranslate2"),
        "--engine ctranslate2 is for one process: leave --launcher out",
    ),
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
        "DEMO": demo,
        "OUT": tmp_path / "out",
        "RUN": demo / "transformer",
        "RUN2": demo / "future-cost-1",
        "RUN@7": f"{demo / 'transformer'}@7",
        "NOWHERE": tmp_path / "nowhere",
        "FILE": tmp_path / "in.txt",
        "BLANK": tmp_path / "blank.txt",
    }
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, monkeypatch, *(places.get(argument, argument) for argument in arguments))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blank.txt", "in.txt"], "nothing was written"
