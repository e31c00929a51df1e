"""What every test may ask for: one torch thread a worker, and a tiny prepared parallel text."""

import itertools
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from core_models.text.parallel import ParallelText
from core_models.text.prepared import Prepared, prepare
from tests.kinds import MARKS, kinds_of
from tests.trained import shared

torch.set_num_threads(1)  # whatever the environment says

_WORDS = {
    "the": "der",
    "old": "alte",
    "small": "kleine",
    "dog": "Hund",
    "man": "Mann",
    "tree": "Baum",
    "sees": "sieht",
    "loves": "liebt",
    "finds": "findet",
    "today": "heute",
    "here": "hier",
    "and": "und",
}


def pytest_addoption(parser) -> None:
    parser.addoption(
        "--fast", action="store_true", help="only files without trained runs, processes, pages or browsers"
    )


def pytest_configure(config) -> None:
    for name, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_ignore_collect(collection_path: Path, config) -> bool | None:
    """With --fast a file of another kind is not even imported. None leaves the decision to others."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if config.getoption("--fast") and is_test and kinds_of(collection_path) else None


def pytest_collection_modifyitems(items) -> None:
    kinds = {path: kinds_of(path) for path in {item.path for item in items}}
    for item in items:
        for kind in kinds[item.path]:
            item.add_marker(kind)


@pytest.fixture(scope="session", autouse=True)
def _interrupts_arrive() -> None:
    """A shell makes what it runs in the background deaf to Ctrl-C, which tests send to what they start."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory) -> None:
    """No test, and nothing that it starts, writes into the home of whoever runs it, or sees runs but its own."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["WORKBENCH_EXHIBITS"] = "0"


@pytest.fixture(autouse=True)
def _environment_stays() -> Iterator[None]:
    """Commands that a test calls in its own process set variables for the processes that they would start."""
    with patch.dict(os.environ):
        yield


@pytest.fixture(autouse=True)
def _main_stays() -> Iterator[None]:
    """Streamlit's tests put the app in the place of `__main__`, which every process started later would run first."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


def _sentence(drawn: random.Random) -> list[str]:
    def noun_phrase() -> list[str]:
        adjectives = drawn.sample(["old", "small"], drawn.randint(0, 2))
        return ["the", *adjectives, drawn.choice(["dog", "man", "tree"])]

    clauses = [
        [
            *noun_phrase(),
            drawn.choice(["sees", "loves", "finds"]),
            *noun_phrase(),
            *drawn.choice([[], ["today"], ["here"]]),
        ]
        for _ in range(drawn.randint(1, 2))
    ]
    return list(itertools.chain(clauses[0], *(["and", *clause] for clause in clauses[1:])))


def _text(name: str, sentences: int, seed: int) -> ParallelText:
    drawn = random.Random(seed)
    english = [_sentence(drawn) for _ in range(sentences)]
    german = [" ".join(_WORDS[word] for word in sentence) for sentence in english]
    return ParallelText(
        name, [" ".join(sentence) for sentence in english], german, [f"d{i // 5}" for i in range(sentences)]
    )


@pytest.fixture(scope="session")
def own(tmp_path_factory) -> Path:
    """Where this worker has its links to what is trained once for all: as deep as copies of runs in its other folders,
    which find their data by the same relative path."""
    return tmp_path_factory.getbasetemp()


@pytest.fixture(scope="session")
def prepared(own) -> Prepared:
    """Two hundred sentence pairs of a small grammar, translated word by word, with one joint BPE vocabulary."""

    def build(folder: Path, beside: Path) -> None:
        texts = _text("train", 200, 1), _text("dev", 20, 2), {"test": _text("test", 15, 3)}
        prepare(folder, *texts, pieces=100, kind="bpe")

    return Prepared.open(shared(own, "prepared", build))
