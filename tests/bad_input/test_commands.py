"""Commands that are given what they cannot use: one sentence, exit code 2, and earlier results as they were."""

from __future__ import annotations

import numpy as np
import pytest

from core_models.traces import TraceArray, write_traces

pytestmark = pytest.mark.long

COMMANDS = {
    "one run to compare": (("compare", "runs/one"), "runs/one alone cannot be compared; name the baseline and"),
    "a file for a run": (("evaluate", "in.txt"), "in.txt: no run here: config.yaml is missing"),
    "too few samples": (("evaluate", "runs/one", "--n-resamples", 39), "Invalid value for '--n-resamples'"),
    "no time": (("resume", "runs/one", "--max-minutes", 0), "0 leaves no time; give more than 0"),
    "no time to begin": (
        ("train", "transformer", "--data", "data", "--out", "new", "--max-minutes", -1),
        "-1 leaves no time; give more than 0",
    ),
    "a trace of no name": (
        ("trace", "runs/one", "--arrays", "log_prob, gaet"),
        "one has no trace of the name gaet; '*' stands for all",
    ),
    "sentences backwards": (("trace", "runs/one", "--sentences", "1-0"), "--sentences '1-0': write numbers from 0"),
    "sentences of no number": (("trace", "runs/one", "--sentences", "²"), "--sentences '²': write numbers from 0"),
    "sentences that are not there": (
        ("trace", "runs/one", "--sentences", "0-99999999999"),
        "--sentences '0-99999999999': test has sentences 0 to 1",
    ),
    "a sentence of many digits": (("trace", "runs/one", "--sentences", "9" * 5000), "write numbers from 0"),
    "a figure for no folder": (
        ("figure", "scores", "--run", "runs/one", "--out", "no/f.pdf"),
        "there is no folder no; make it",
    ),
    "a figure of no width": (("figure", "scores", "--run", "runs/one", "--width", 0), "--width 0: write column, page"),
    "a figure of a wrong width": (
        ("figure", "scores", "--run", "runs/one", "--width", "wide"),
        "--width wide: write column",
    ),
    "a key of no name": (("figure", "scores", "--run", "runs/one", "--option", "=1"), "--option '=1': write key=value"),
    "no sentences": (
        ("data", "controlled", "--out", "x", "--sentences", 0),
        "Invalid value for '--sentences'",
    ),
    "a file for a corpus": (
        ("data", "controlled", "--out", "in.txt", "--sentences", 9),
        "in.txt: a file is in the place of the folder",
    ),
    "an unknown system to measure": (
        ("benchmark", "speed", "transfomer"),
        "there is no system 'transfomer'; did you mean 'transformer'?",
    ),
    "a precision of no name": (
        ("benchmark", "speed", "--precision", "float7"),
        "--precision float7: choose float32, bfloat16 or int8",
    ),
    "records in rounds": (
        ("benchmark", "speed", "--json", "--rounds", 2),
        "--json measures once, in this process, and prints; leave out --peers, --csv and --rounds",
    ),
    "a device that is not there": (
        ("benchmark", "speed", "--device", "cuda:99"),
        "device 'cuda:99': PyTorch finds no such device here",
    ),
    "an experiment of no text": (("experiment", "status", "runs"), "runs: cannot be read (Is a directory)"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_a_command_that_cannot_be_done_is_refused(run, refused, case):
    trace = {"log_prob": TraceArray(("target",), np.zeros(3, dtype=np.float32))}
    write_traces(run / "traces" / "test", {0: trace, 1: trace})
    arguments, message = COMMANDS[case]
    assert message in refused(*arguments)
