"""Tokenized lines, as sacreBLEU's tokenizers make them."""

from analyses.tokenization import tokenised


def test_words_are_told_from_punctuation_by_sacrebleus_tokenizers():
    assert tokenised(["Yes, I do."], "13a", lowercase=True) == ["yes , i do ."]
    assert tokenised(["我爱你"], "zh") == ["我 爱 你"]
