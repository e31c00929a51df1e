"""Tokenized lines, as sacreBLEU's tokenizers make them."""

from analyses.tokenization import tokenized


def test_words_are_told_from_punctuation_by_sacrebleus_tokenizers():
    assert tokenized(["Yes, I do."], "13a", lowercase=True) == ["yes , i do ."]
    assert tokenized(["我爱你"], "zh") == ["我 爱 你"]
