"""Every file of a run spoiled in many ways, and the commands that read it: they end well or with a sentence and 2."""

from __future__ import annotations

import copy
import io
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.bad_input.conftest import run_command
from tests.kinds import sampled

# How often each file is spoiled; more are tried by setting the variable.
TIMES = int(os.environ.get("WORKBENCH_SPOILED", "5"))
ODD: list[Any] = [
    *(None, True, -1, 0, 3, 10**12, 10**400, 0.5, -1e300, float("nan"), float("inf")),
    *("", "x", "\0", "../../x", "\ud800", "9" * 5000, "²"),
    *([], [1], [[]], {}, {"x": 1}, [[[[[[[[1]]]]]]]]),
]
BYTES = [b"", b"\0", b"\xff\xfe", b"null", b"[]", b"{}", b"[1]", b"[" * 100_000, b'{"a":' * 50_000, b"NaN", b"\n" * 3]
FIGURE = ("--run", "runs/one", "--out", "figure.json")
RUNS = ("runs", "--runs", "runs")
TRANSLATE = ("translate", "runs/one", "--input", "in.txt", "--output", "out.txt")
EVALUATE = ("evaluate", "runs/one", "--n-resamples", "40", "--metrics", "bleu")
TRACE = ("trace", "runs/one", "--sentences", "0-1")
RESUME = ("resume", "runs/one", "--device", "cpu")
COST = ("figure", "future-cost-overlay", *FIGURE)
COMMANDS = {
    "config.yaml": (RUNS, TRANSLATE, EVALUATE, RESUME),
    "training.jsonl": (RUNS, ("figure", "training-curves", *FIGURE), RESUME),
    "vocabulary/target.model": (TRANSLATE,),
    "weights.safetensors": (TRANSLATE, TRACE),
    "translations/test/meta.json": (RUNS, EVALUATE, TRACE),
    "translations/test/details.jsonl": (TRACE, COST),
    "translations/test/hypotheses.txt": (RUNS, EVALUATE),
    "translations/test/sources.txt": (EVALUATE, TRACE),
    "translations/test/documents.txt": (EVALUATE, ("analyze", "documents", "--run", "runs/one", "--out", "table.csv")),
    "translations/test/trees.jsonl": (("figure", "beam-tree", *FIGURE),),
    "translations/test/trees.npy": (("figure", "beam-tree", *FIGURE, "--sentence", "3"),),
    "traces/test/index.json": (COST, ("figure", "future-cost-calibration", *FIGURE)),
    "traces/test/forced.json": (COST,),
    "traces/test/log_prob.npy": (COST, ("figure", "future-cost-calibration", *FIGURE)),
    "known_scores/test.json": (RUNS, EVALUATE),
    "scores/*.npz": (EVALUATE,),
    "state/step-000004/progress.json": (RUNS, RESUME),
    "state/step-000004/optimizer.pt": (RESUME,),
    "state/step-000004/weights.safetensors": (RESUME,),
}


def _places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """Where something stands in nested lists and mappings."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, own in inner:
        yield from _places(own, (*path, key))


def _changed(value: Any, drawn: random.Random) -> Any:
    """One value, somewhere, is another, is gone, or has company."""
    value, path = copy.deepcopy(value), drawn.choice(list(_places(value))[1:] or [()])
    if not path:
        return drawn.choice(ODD)
    place = value
    for key in path[:-1]:
        place = place[key]
    if drawn.random() < 0.2:
        del place[path[-1]]
    elif isinstance(place, dict) and drawn.random() < 0.1:
        place["x\0y"] = drawn.choice(ODD)
    else:
        place[path[-1]] = drawn.choice(ODD)
    return value


def _bytes(content: bytes, drawn: random.Random) -> bytes:
    begin, odd = drawn.randrange(len(content) + 1), drawn.choice(BYTES)
    return drawn.choice([content[:begin], odd, content[:begin] + odd + content[begin + 1 :], content + odd])


def _lines(content: bytes, drawn: random.Random) -> bytes:
    lines = content.splitlines()
    place = drawn.randrange(len(lines))
    lines[place] = json.dumps(_changed(json.loads(lines[place]), drawn)).encode()
    return b"\n".join(lines) + b"\n"


def _array(content: bytes, drawn: random.Random) -> bytes:
    array, written = np.load(io.BytesIO(content)), io.BytesIO()
    np.save(written, drawn.choice(_ARRAYS)(array))
    return written.getvalue()


_ARRAYS: list[Callable[[np.ndarray], Any]] = [
    lambda array: array[:0],
    lambda array: array[None],
    lambda array: array.astype(complex),
    lambda array: array.astype("U9"),
    lambda array: array > 0,
    lambda array: array * -1000 - 1,
    lambda array: array.astype(np.float64) * np.nan,
    lambda array: (array * np.nan).astype(np.float16),
    lambda array: array[::-1],
    lambda array: array[1:],
    lambda array: np.zeros((), dtype=np.int64),
    lambda array: array.astype("datetime64[s]") if array.dtype.kind == "i" else array.astype(">f8"),
]


def _spoiled(path: Path, drawn: random.Random) -> bytes:
    content = path.read_bytes()
    if drawn.random() < 0.35:
        return _bytes(content, drawn)
    if path.suffix == ".json":
        return json.dumps(_changed(json.loads(content), drawn)).encode()
    if path.suffix == ".jsonl":
        return _lines(content, drawn)
    if path.suffix == ".yaml":
        return yaml.safe_dump(_changed(yaml.safe_load(content), drawn)).encode()
    return _array(content, drawn) if path.suffix == ".npy" else _bytes(content, drawn)


@pytest.mark.parametrize("name", sampled(COMMANDS, every=2))
@pytest.mark.filterwarnings("ignore")
def test_a_spoiled_file_ends_every_command_well_or_with_a_sentence(whole_run, tmp_path, monkeypatch, capfd, name):
    monkeypatch.chdir(tmp_path)
    drawn = random.Random(name)
    (path,) = whole_run.glob(name) if "*" not in name else sorted(whole_run.glob(name))[:1]
    for time in range(TIMES):
        shutil.rmtree("runs", ignore_errors=True)
        shutil.copytree(whole_run.parent, "runs")
        Path("in.txt").write_text("the old dog\n")
        content = _spoiled(path, drawn)
        if name.startswith("state/"):  # of which more is asked, else it is only looked at
            config = yaml.safe_load(Path("runs/one/config.yaml").read_text())
            config["training"]["max_steps"] = 5
            Path("runs/one/config.yaml").write_text(yaml.safe_dump(config))
        (Path("runs/one") / path.relative_to(whole_run)).write_bytes(content)
        for command in COMMANDS[name]:
            with pytest.raises(SystemExit) as stopped:
                run_command(monkeypatch, command)
            said = capfd.readouterr().err
            told = f"{' '.join(command)}, spoiled for the {time}th time: {content[:300]!r}\n{said}"
            assert stopped.value.code in (None, 0, 2), told
            assert "Traceback" not in said, told
            if stopped.value.code == 2:
                assert any(line.startswith("workbench: ") for line in said.splitlines()), told
            assert len(said) < 5000, told
    sys.stderr.flush()
