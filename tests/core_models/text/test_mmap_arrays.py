"""Laws of arrays on the disk: a large one, which is read, gives what a small one gives, which is mapped."""

import numpy as np
import pytest

from core_models.text import mmap_arrays
from core_models.text.mmap_arrays import SIDES, BinaryText, SideWriter

SENTENCES = [[5, 6, 65_535], [7], [8, 9], [10, 11, 12, 13]]
LINES = ["Straße", "ein Haus", "", "naïve 我"]


@pytest.fixture
def text(tmp_path):
    for side in SIDES:
        writer = SideWriter(tmp_path, side, vocabulary_size=65_536, max_length=256)
        writer.append(SENTENCES[:3], LINES[:3])
        writer.append(SENTENCES[3:], LINES[3:])
        writer.close()
    return BinaryText(tmp_path)


@pytest.mark.parametrize("mapped_bytes", [0, 1 << 26], ids=["read", "mapped"])
def test_any_sentence_in_any_order_is_the_one_that_was_written(text, mapped_bytes, monkeypatch):
    monkeypatch.setattr(mmap_arrays, "_MAX_MAPPED_BYTES", mapped_bytes)
    for i in (3, 0, 2, 1, 3):
        assert text.source(i).tolist() == text.target(np.int64(i)).tolist() == SENTENCES[i]
        assert text.source_text(i) == text.target_text(np.int64(i)) == LINES[i]
    assert text.source(0).dtype == np.uint16
    assert text.source_lengths.tolist() == [3, 1, 2, 4]
