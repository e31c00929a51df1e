"""A vocabulary of words: numbers and pieces are one to one, texts come back, BPE is subword-nmt's."""

import pickle
import sys

import pytest

from core_models.text.dictionary_vocabulary import (
    DictionaryVocabulary,
    load_vocabulary,
    read_codes,
    read_dictionary,
)
from core_models.text.parallel import TextError
from core_models.text.vocabulary import BOS, EOS, PAD, UNK

WORDS = ["der", "Kr@@", "an", "n", "a@@", "madeupword0000", "<s>", "der"]


def test_pieces_and_numbers_are_one_to_one():
    vocabulary = DictionaryVocabulary.of(WORDS)
    names = vocabulary.pieces(range(len(vocabulary)))
    assert len(set(names)) == len(vocabulary) == len(WORDS) + 4
    assert names[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert names[PAD], names[UNK] == ("<pad>", "<unk>")


def test_a_text_of_words_comes_back_and_an_unknown_word_is_the_unknown_piece():
    vocabulary = DictionaryVocabulary.of(WORDS)
    assert vocabulary.encode(["der  Kr@@ an", "der </s> x", ""]) == [[11, 5, 6], [11, UNK, UNK], []]
    assert vocabulary.decode([[11, 5, 6], [BOS, 4, EOS, PAD], [7, UNK]]) == ["der Kr@@ an", "der", "n <unk>"]


def test_it_is_stored_copied_to_processes_and_told_from_sentencepiece(tmp_path, prepared):
    vocabulary = DictionaryVocabulary.of(WORDS)
    vocabulary.save(tmp_path / "source.model")
    prepared.source_vocabulary.save(tmp_path / "other.model")
    for other in (load_vocabulary(tmp_path / "source.model"), pickle.loads(pickle.dumps(vocabulary))):
        assert (other.digest, other.encode(["der Kr@@ an"])) == (vocabulary.digest, [[11, 5, 6]])
    assert load_vocabulary(tmp_path / "other.model").digest == prepared.source_vocabulary.digest


NO_DICTIONARIES = (
    '{"kind": "dictionary"', "{}", '{"kind": "x", "words": [], "codes": []}', "{" * 100_000,
    '{"kind": "dictionary", "words": [1], "codes": []}',
)  # fmt: skip


@pytest.mark.parametrize("content", NO_DICTIONARIES)
def test_a_stored_dictionary_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "source.model").write_text(content)
    with pytest.raises(TextError, match=r"source\.model"):
        load_vocabulary(tmp_path / "source.model")


def test_words_are_cut_as_subword_nmt_cuts_them(tmp_path):
    """lower: l o, lo w, e r</w>, in the order of the codes; fastBPE's have counts."""
    pytest.importorskip("subword_nmt", reason="the extra `fairseq` is not installed")
    texts = {
        "subword-nmt": "#version: 0.2\nl o\nlo w\ne r</w>\n",
        "fastBPE": "l o 9\nlo w 7\ne r</w> 3\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        vocabulary = DictionaryVocabulary.of(["low@@", "er", "lo@@", "l", "o@@", "w"], read_codes(tmp_path / name))
        ids = vocabulary.encode(["lower lol w"])
        assert vocabulary.pieces(ids[0]) == ["low@@", "er", "lo@@", "l", "w"]
        assert vocabulary.decode(ids) == ["lower lol w"]
        assert vocabulary.decode([ids[0][:3]]) == ["lower lo"], "a piece that nothing continues"


def test_codes_without_the_package_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "subword_nmt.apply_bpe", None)
    with pytest.raises(TextError, match=r"pip install 'nmt-workbench\[fairseq\]'"):
        DictionaryVocabulary.of(WORDS, ["K r"])


def test_a_dictionary_of_fairseq_is_read_in_its_order(tmp_path):
    (tmp_path / "dict.txt").write_text(
        "der 9\nein Wort 3\nder 1 #fairseq:overwrite\nmadeupword0000 0\n", encoding="utf-8"
    )
    assert read_dictionary(tmp_path / "dict.txt") == ["der", "ein Wort", "der", "madeupword0000"]


NO_FILES = [
    ("der 9\nder 8\n", "line 2 has 'der' again"),
    ("der\n", "line 1 is not"),
    ("der 1\n\n", "line 2 is not"),
    (" 1\n", "line 1 is not"),
]


@pytest.mark.parametrize(("text", "message"), NO_FILES)
def test_a_dictionary_that_is_none_names_its_line(tmp_path, text, message):
    (tmp_path / "dict.txt").write_text(text)
    with pytest.raises(TextError, match=message):
        read_dictionary(tmp_path / "dict.txt")


NO_CODES = [
    ("#version: 0.2\na b c\n", "line 2 is not two pieces"),
    ("a b\na\n", "line 2 is not two pieces"),
    ("#version: 0.9\na b\n", "codes of version: 0.9"),
]


@pytest.mark.parametrize(("text", "message"), NO_CODES)
def test_codes_that_are_none_name_their_line(tmp_path, text, message):
    (tmp_path / "codes").write_text(text)
    with pytest.raises(TextError, match=message):
        read_codes(tmp_path / "codes")
