"""Models as OPUS-MT stores them: a SentencePiece model a side and vocab.json, read as MarianTokenizer reads them."""

import json
import random

import pytest
import sentencepiece
import torch

from core_models import Translator
from core_models.foreign import describe_model, open_model

pytestmark = pytest.mark.long

transformers = pytest.importorskip("transformers", reason="the extra `huggingface` is not installed")

ENGLISH = "the old small dog man tree sees loves finds today here and house captain"
GERMAN = "der alte kleine Hund Mann Baum sieht liebt findet heute hier und Haus Kapitän"


def _lines(words: str, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(words.split(), k=drawn.randint(1, 8))) for _ in range(100)]


TEXTS = {"source": _lines(ENGLISH, 1), "target": _lines(GERMAN, 2)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random Marian with the numbers of OPUS-MT: </s> 0, <unk> 1, <pad> last, which the decoder begins with."""
    folder = tmp_path_factory.mktemp("marian")
    numbers = {"</s>": 0, "<unk>": 1}
    for side, lines in TEXTS.items():
        with (folder / f"{side}.spm").open("wb") as model:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines), model_writer=model, vocab_size=50, bos_id=-1, hard_vocab_limit=False,
                minloglevel=2,
            )  # fmt: skip
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        for number in range(len(pieces)):
            numbers.setdefault(pieces.id_to_piece(number), len(numbers))
    padding = numbers.setdefault("<pad>", len(numbers))
    (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    settings = {"source_lang": "en", "target_lang": "de", "tokenizer_class": "MarianTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    torch.manual_seed(1)
    config = transformers.MarianConfig(
        vocab_size=len(numbers), d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, init_std=0.15, pad_token_id=padding,
        eos_token_id=0, decoder_start_token_id=padding, forced_eos_token_id=0,
    )  # fmt: skip
    transformers.MarianMTModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def opened(folder):
    return open_model(describe_model(folder))


@pytest.mark.parametrize("side", TEXTS)
def test_each_side_is_cut_by_its_own_model_and_comes_back(folder, opened, side):
    vocabulary = {"source": opened.source_vocabulary, "target": opened.target_vocabulary}[side]
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
    found = vocabulary.encode(TEXTS[side])
    assert [vocabulary.pieces(ids) for ids in found] == pieces.encode(TEXTS[side], out_type=str)
    assert vocabulary.decode(found) == TEXTS[side]


@torch.no_grad()
def test_forced_log_probs_are_those_of_the_model_with_its_own_tokenizer(folder, opened):
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    translator = Translator(opened.system, opened.source_vocabulary, opened.target_vocabulary)
    sources, targets = (lines[:8] for lines in TEXTS.values())
    for source, target, found in zip(sources, targets, translator.score(sources, targets), strict=True):
        batch = tokenizer([source], text_target=[target], return_tensors="pt")
        log_probs = model(**batch).logits.log_softmax(-1)[0].gather(1, batch["labels"][0][:, None])[:, 0]
        assert found.token_log_probs == pytest.approx(log_probs.tolist(), abs=2e-5)
