"""The demo: real systems trained on the controlled corpus in a few minutes, translated, scored, traced.

The same seed gives the same bytes on one machine and thread count. Every step that is done already is passed over, so
an interrupted demo goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.runs import Run, open_run
from workbench.training import finished, new_run, train

SYSTEMS = ("transformer", "future-cost-1", "future-cost-2")
SENTENCES: dict[str, Any] = {"sentences": 15000, "dev": 300, "test": 500}
PIECES, KIND = 1000, "bpe"  # about one piece a word
TRACES = ("log_prob", "future_cost.*")
# A million parameters that see each sentence four times: nothing to regularise, and no time to wait for dropout.
MODEL = "preset=demo,dropout=0,attention_dropout=0"
TRAINING: dict[str, Any] = {
    "max_steps": 1040,
    "batch_tokens": 700,
    "learning_rate": 4e-3,
    "warmup": 80,
    "schedule": "cosine",
    "validate_every": 200,
    "log_every": 20,
    "keep_last": 1,
}
SEARCH: dict[str, Any] = {"beam": 5, "length_penalty": 0.6, "max_length": 100}

Say = Callable[[str], None]
Report = Callable[[str, int, int], None]  # (what is being done, how much of it, of how much)


def folder_of(root: Path) -> Path:
    return root / "demo"


def complete(root: Path) -> bool:
    """Is the demo there, whole?"""
    return all((folder_of(root) / name / "traces" / "test" / "index.json").is_file() for name in SYSTEMS)


def prepare_data(folder: Path, say: Say) -> Path:
    """Write the demo's controlled corpus and its prepared form."""
    return prepare_controlled(folder, say, SENTENCES, PIECES, KIND)


def prepare_controlled(folder: Path, say: Say, sentences: Mapping[str, Any], pieces: int, kind: str) -> Path:
    """Write a controlled corpus (`sentences`: what `generate` takes) and its prepared form, FOLDER/data."""
    from core_models.text import controlled
    from core_models.text.binary import Prepared, prepare
    from core_models.text.parallel import TextError, read_parallel

    data = folder / "data"
    try:
        Prepared.open(data)
        return data
    except TextError:
        say("Writing the controlled corpus: English to German-like, its truth known")
    corpus = controlled.generate(**sentences)
    controlled.write(corpus, folder / "corpus")
    say(controlled.format_oracles(controlled.oracles(corpus)))
    text = {
        name: read_parallel(folder / "corpus" / f"{name}.en", folder / "corpus" / f"{name}.de", name=name)
        for name in ("train", "dev", "test")
    }
    truths = {name: folder / "corpus" / f"{name}.truth.jsonl" for name in ("dev", "test")}
    prepare(
        data,
        text["train"],
        text["dev"],
        {"test": text["test"]},
        pieces=pieces,
        kind=kind,
        source_language="en",
        target_language="de",
        truths=truths,
    )
    return data


def build_system(root: Path, name: str, say: Say = print, report: Report | None = None, device: str = "cpu") -> Run:
    """Train one system of the demo, translate its test set with beams recorded, and trace it."""
    import core_models
    from workbench.evaluation import test_set, trace_test, translate_test

    folder = folder_of(root)
    data = prepare_data(folder, say)
    path = folder / name
    if not (path / "config.yaml").is_file():
        new_run(path, f"{name}:{MODEL}", data, TRAINING, SEARCH)
    run = open_run(path)
    if not finished(path):
        say(f"Training {name}")
        train(run, None if report is None else lambda progress, total, _: report(name, progress.step, total), device)
    translator = core_models.load(path, device)
    if not run.tests():
        say(f"Translating the test set with {name}")
        test, truth = test_set(run, "test")
        translate_test(run, test, truth, trees=True, translator=translator)
    if not (path / "traces" / "test" / "index.json").is_file():
        trace_test(run, run.translations("test"), TRACES, translator=translator)
    return run


def build(root: Path, say: Say = print, report: Report | None = None, device: str = "cpu") -> list[Run]:
    """Build the whole demo below `root` and say the scores."""
    from workbench.evaluation import score_table

    runs = [build_system(root, name, say, report, device) for name in SYSTEMS]
    table = score_table(runs, "test")
    for row in table.itertuples():
        say(f"{row.system:16} {row.metric:5} {row.score:6.2f}  [{row.low:.2f}, {row.high:.2f}]  {row.signature}")
    return runs
