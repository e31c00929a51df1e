"""What is kept of scores is what was extracted, or it is extracted again: damaged files, files of other texts, numbers
that were made up."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from analyses import scores, statistics_cache
from analyses.npz_cache import read_arrays, write_arrays
from analyses.statistics_cache import cached_extract, cached_extract_all, content_key
from tests.analyses.corpora import noisy_copy, reference_lines
from tests.kinds import sampled

pytestmark = pytest.mark.long

REFERENCES = reference_lines(60)
OTHER = noisy_copy(REFERENCES, 7, 0.3)
HYPOTHESES = noisy_copy(REFERENCES, 3, 0.4)
METRICS = [("bleu", np.int64), ("chrf", np.int64), ("chrf++", np.int64), ("ter", np.float64)]


@pytest.fixture(autouse=True)
def _of_another_process(monkeypatch):
    """Nothing was held to its texts before."""
    monkeypatch.setattr(statistics_cache, "_checked", set())


@pytest.mark.parametrize(("metric", "kind"), METRICS)
def test_what_is_kept_is_what_was_extracted_and_heals(tmp_path, metric, kind):
    fresh = scores.extract(HYPOTHESES, [REFERENCES, OTHER], metric)
    cached_extract(tmp_path, HYPOTHESES, [REFERENCES, OTHER], metric)
    [path] = tmp_path.iterdir()
    for damage in (None, b"", b"PK no archive"):
        if damage is not None:
            path.write_bytes(damage)
        again = cached_extract(tmp_path, HYPOTHESES, [REFERENCES, OTHER], metric)
        np.testing.assert_array_equal(again.values, fresh.values)
        assert (again.signature, again.total) == (fresh.signature, fresh.total)
        assert again.values.dtype == kind
        assert list(tmp_path.iterdir()) == [path]


def test_what_holds_is_read_and_not_written_again(tmp_path):
    (tmp_path / "old").mkdir()
    cached_extract(tmp_path / "old", HYPOTHESES, REFERENCES)
    [kept] = (tmp_path / "old").iterdir()
    written = kept.stat()
    systems = {"old": HYPOTHESES, "new": OTHER}
    for _ in range(2):
        found = cached_extract_all({name: tmp_path / name for name in systems}, systems, REFERENCES)
        assert list(found) == ["old", "new"]
        np.testing.assert_array_equal(found["new"].values, scores.extract(OTHER, REFERENCES).values)
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (written.st_ino, written.st_mtime_ns)
    assert len(list((tmp_path / "new").iterdir())) == 1


def _perfect(values: np.ndarray, metric: str) -> np.ndarray:
    """Possible numbers of the right shape, of hypotheses that are their references."""
    values = values.copy()
    if metric == "bleu":
        values[:, 1] = values[:, 0]
        values[:, 2:6] = values[:, 6:10]
    elif metric == "ter":
        values[:, 0] = 0
    else:
        values[:, 1::3] = values[:, 2::3] = values[:, ::3]
    return values


MADE_UP = {
    "a perfect score": _perfect,
    "more right than there are": lambda values, metric: values[:, ::-1] * 10,
    "ones": lambda values, metric: np.ones_like(values),
    "negative": lambda values, metric: -values,
    "other numbers": lambda values, metric: values.astype(np.float32),
    "not finite": lambda values, metric: np.where(np.arange(len(values))[:, None] == 3, np.nan, values),
    "one segment less": lambda values, metric: values[1:],
    "one column less": lambda values, metric: values[:, 1:],
    "flat": lambda values, metric: values.ravel(),
    "text": lambda values, metric: values.astype(str),
    "nothing": lambda values, metric: values[:0],
}


@pytest.mark.parametrize("signed", [False, True], ids=["edited", "edited and signed"])
@pytest.mark.parametrize("case", MADE_UP)
@pytest.mark.parametrize("metric", sampled(["bleu", "chrf", "ter"]))
def test_numbers_that_are_not_of_the_texts_are_counted_again(tmp_path, metric, case, signed):
    fresh = cached_extract(tmp_path, HYPOTHESES, REFERENCES, metric)
    [path] = tmp_path.iterdir()
    values = MADE_UP[case](fresh.values, metric)
    assert not np.array_equal(values, fresh.values) or values.dtype != fresh.values.dtype
    kept = read_arrays(path)
    if signed:  # by who knows how: the digest alone proves nothing
        header = json.dumps([path.stem, values.dtype.str, values.shape]).encode()
        kept["digest"] = np.array(hashlib.sha256(header + np.ascontiguousarray(values).tobytes()).hexdigest())
    write_arrays(path, **{**kept, "values": values})
    again = cached_extract(tmp_path, HYPOTHESES, REFERENCES, metric)
    np.testing.assert_array_equal(again.values, fresh.values)
    assert again.total == fresh.total
    np.testing.assert_array_equal(read_arrays(path)["values"], fresh.values)  # healed


def test_the_file_of_other_texts_is_not_taken(tmp_path):
    cached_extract(tmp_path, REFERENCES, REFERENCES)
    [path] = tmp_path.iterdir()
    path.rename(tmp_path / f"{content_key(HYPOTHESES, REFERENCES)}.npz")
    assert cached_extract(tmp_path, HYPOTHESES, REFERENCES).total == scores.extract(HYPOTHESES, REFERENCES).total < 100


def test_content_key_changes_with_every_input_and_not_with_the_container():
    key = content_key(["a b", "c"], ["a", "c"], "bleu")
    assert key == content_key(("a b", "c"), [["a", "c"]], "bleu")
    others = [
        content_key(["a", "b c"], ["a", "c"], "bleu"),
        content_key(["a b", "c"], ["a", "d"], "bleu"),
        content_key(["a b", "c"], ["a", "c"], "chrf"),
        content_key(["a b", "c"], ["a", "c"], "bleu", lowercase=True),
        content_key(["a b", "c"], [["a", "c"], ["a", "c"]], "bleu"),
    ]
    assert len({key, *others}) == 6
