"""Readers given anything: they return what they promise or refuse with an error that is a sentence, in bounded time."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import shutil
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_models.checkpoint import CheckpointError, open_trained
from core_models.config import RunConfig, read_config
from core_models.settings import ConfigError
from core_models.text.parallel import TextError, read_lines, read_parallel, read_tsv, write_lines
from core_models.text.prepared import Prepared
from core_models.text.vocabulary import Vocabulary
from core_models.traces import TraceArray, TraceError, write_traces
from workbench.app.url_state import from_query
from workbench.store.listing import Known
from workbench.store.runs import RunError, list_runs, open_run
from workbench.store.training_logs import training_table

SENTENCES = (TextError, ConfigError, CheckpointError, RunError, TraceError)
# What has broken readers of text, YAML and JSON before: nesting, aliases, dates, endless numbers, half characters.
TOKENS = [
    *(b"", b"\n", b"\r\n", b"\r", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xc2\x85", b"\xe2\x80\xa8", b"\x1f\x8b"),
    *(
        b"null",
        b"[]",
        b"{}",
        b"[1]",
        b"1: 2\n",
        b"-1",
        b"1e999",
        b".nan",
        b".inf",
        b"NaN",
        b"9" * 5000,
        b"0x_",
        b"true",
    ),
    *(b"2020-13-45", b"!!python/object:os.system", b"&a [*a]", b"*a", b"? [a]\n", b'"\\ud800"', b"../../x", b"@"),
    *(b"[" * 1200, b"{a: " * 400),
]
BYTES = st.one_of(st.binary(max_size=40), st.sampled_from(TOKENS))
LINES = st.lists(st.one_of(st.sampled_from([b"a", b"d1", b"d2", b"a\tb", b"a\tb\tc"]), BYTES), max_size=8)
FILES = st.one_of(LINES.map(b"\n".join), LINES.map(lambda lines: b"".join(line + b"\n" for line in lines)))


def bounded(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=timedelta(seconds=10),  # of one example, on a machine that does much else; alone it takes milliseconds
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


@contextlib.contextmanager
def sentences() -> Iterator[None]:
    """Refusals are let through where they are one of the project's own errors and short enough to be read."""
    try:
        yield
    except SENTENCES as error:
        said = str(error)
    else:
        return
    assert 0 < len(said) < 3000


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@bounded(120)
@given(content=FILES, packed=st.sampled_from(["plain", "packed", "damaged", "not packed"]))
def test_any_bytes_are_lines_or_are_refused(tmp_path, content, packed):
    stored = content if packed in ("plain", "not packed") else gzip.compress(content)
    stored = stored[: len(stored) * 2 // 3] if packed == "damaged" else stored
    path = _write(tmp_path / ("x.txt" if packed == "plain" else "x.txt.gz"), stored)
    with sentences():
        lines = read_lines(path)
        assert len(lines) == content.count(b"\n") + (not content.endswith(b"\n"))
        write_lines(tmp_path / "again", lines) if not any(line.endswith("\r") for line in lines) else None


@bounded(120)
@given(source=FILES, target=FILES, documents=st.one_of(st.none(), FILES))
def test_any_files_are_parallel_text_or_are_refused(tmp_path, source, target, documents):
    paths = [_write(tmp_path / "x.en", source), _write(tmp_path / "x.de", target)]
    with sentences():
        text = read_parallel(*paths, None if documents is None else _write(tmp_path / "ids", documents))
        assert len(text.sources) == len(text.targets)
        if text.documents is not None:
            runs = [name for name, _ in itertools.groupby(text.documents)]
            assert len(text.documents) == len(text.sources)
            assert len(set(runs)) == len(runs)


@bounded(100)
@given(content=FILES, columns=st.lists(st.integers(-1, 3), max_size=4).map(tuple))
def test_any_table_is_parallel_text_or_is_refused(tmp_path, content, columns):
    with sentences():
        text = read_tsv(_write(tmp_path / "x.tsv", content), columns)
        assert len(text.sources) == len(text.targets)


@st.composite
def spoiled(draw, content: bytes) -> bytes:
    """A file with some stretches replaced: cut, spliced, overwritten."""
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(content)))
        end = draw(st.sampled_from([begin, begin + 1, begin + 8, len(content)]))
        content = content[:begin] + draw(BYTES) + content[max(begin, end) :]
    return content


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(["x", "preset", "width"]), st.integers()), inner, max_size=3),
    ),
    max_leaves=6,
)


@bounded(100)
@given(data=st.data())
def test_any_configuration_is_one_or_is_refused(pristine, tmp_path, data):
    content = (pristine / "config.yaml").read_bytes()
    if data.draw(st.booleans()):
        content = data.draw(spoiled(content))
    else:  # a whole YAML file with something else in the place of a value
        config = yaml.safe_load(content)
        part = data.draw(st.sampled_from([config, config["model"], config["training"], config["search"]]))
        part[data.draw(st.sampled_from([*part, "new"]))] = data.draw(ANYTHING)
        content = yaml.safe_dump(config).encode()
    _write(tmp_path / "config.yaml", content)
    with sentences():
        assert isinstance(read_config(tmp_path), RunConfig)


@pytest.fixture(scope="module")
def whole(pristine, tmp_path_factory) -> Path:
    """A run with all that a run can hold."""
    root = tmp_path_factory.mktemp("whole") / "runs"
    folder = Path(shutil.copytree(pristine, root / "one"))
    events = [{"event": "train", "step": 1, "main_loss": 2.5}, {"event": "valid", "step": 1, "main_loss": 2.0}]
    (folder / "training.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    trees = [json.dumps({"best": row}).encode() + b"\n" for row in range(2)]
    (folder / "translations" / "test" / "trees.jsonl").write_bytes(b"".join(trees))
    np.save(folder / "translations" / "test" / "trees.npy", np.cumsum([0, *map(len, trees)]))
    trace = {"log_prob": TraceArray(("target",), np.zeros(3, dtype=np.float32))}
    write_traces(folder / "traces" / "test", {0: trace, 1: trace})
    return root


# The files of a run, and who reads each.
FILES_OF_A_RUN = {
    "config.yaml": lambda run: run.config,
    "weights.safetensors": lambda run: open_trained(run.folder),
    "vocabulary/target.model": lambda run: open_trained(run.folder),
    "training.jsonl": lambda run: training_table([run]),
    "translations/test/meta.json": lambda run: run.translations("test").test_set,
    "translations/test/hypotheses.txt": lambda run: run.translations("test").hypotheses,
    "translations/test/details.jsonl": lambda run: run.translations("test").details,
    "translations/test/trees.npy": lambda run: [run.translations("test").tree(row) for row in range(2)],
    "translations/test/trees.jsonl": lambda run: [run.translations("test").tree(row) for row in range(2)],
    "traces/test/index.json": lambda run: [run.traces("test")[row] for row in run.traces("test")],
    "traces/test/log_prob.npy": lambda run: [run.traces("test")[row] for row in run.traces("test")],
}


@pytest.mark.parametrize("name", FILES_OF_A_RUN)
@bounded(30)
@given(data=st.data())
def test_any_file_of_a_run_is_read_or_refused_and_listing_never_fails(whole, name, data):
    path = whole / "one" / name
    before = path.read_bytes()
    try:
        path.write_bytes(data.draw(spoiled(before)))
        (listed,) = list_runs(whole)
        with sentences(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's own about headers
            run = open_run("one", whole)
            assert listed.problem is None
            FILES_OF_A_RUN[name](run)
    finally:
        path.write_bytes(before)


@bounded(100)
@given(data=st.data())
def test_any_manifest_is_one_or_is_refused(earlier, tmp_path, data):
    _write(tmp_path / "data.yaml", data.draw(spoiled((earlier / "data.yaml").read_bytes())))
    with sentences():
        prepared = Prepared.open(tmp_path)
        assert [prepared.digest, prepared.joint, prepared.test_names]


@bounded(100)
@given(data=st.data())
def test_any_vocabulary_is_one_or_is_refused(earlier, tmp_path, data):
    path = _write(tmp_path / "x.model", data.draw(spoiled((earlier / "vocabulary" / "joint.model").read_bytes())))
    with sentences():
        vocabulary = Vocabulary.load(path)
        assert all(0 <= piece < len(vocabulary) for ids in vocabulary.encode(["the old dog"]) for piece in ids)


KNOWN = [Known("demo/one", {"test": 30, "dev": 12}), Known("two", {"test": 30})]
VALUES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["demo/one", "two", "test", "../../etc", "/etc", "7", "9" * 5000, "1e999", "²", "-0", "\0"]),
)


@bounded(120)
@given(st.dictionaries(st.sampled_from(["runs", "test", "sentence", "baseline", "x"]), st.lists(VALUES, max_size=3)))
def test_any_query_is_a_view_of_what_there_is(query):
    view, said = from_query(query, KNOWN)
    assert set(view.runs) <= {"demo/one", "two"}
    assert view.test in ("", "test", "dev")
    assert view.baseline in ("", *view.runs)
    assert 0 <= view.sentence < 30
    assert all(sentence.endswith((".", "?")) for sentence in said)
