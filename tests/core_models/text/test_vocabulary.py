"""Laws of the vocabulary: deterministic, reversible, and draws that are a function of the generator alone."""

import io
import pickle
import random
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
import sentencepiece

from core_models.text.parallel import TextError
from core_models.text.vocabulary import BOS, EOS, PAD, UNK, Vocabulary


def _sentences(seed: int, number: int) -> list[str]:
    """Words of syllables: enough shared stems that pieces are worth learning."""
    generator = random.Random(seed)
    stems = ["".join(generator.choices(["ba", "ku", "mi", "no", "re", "to"], k=3)) for _ in range(40)]
    return [
        " ".join(generator.choice(stems) + generator.choice(["", "s", "ing"]) for _ in range(generator.randint(2, 8)))
        for _ in range(number)
    ]


LINES = _sentences(1, 600)
# Words that share nothing take SentencePiece minutes.
SLOW = """
import random
from core_models.text.vocabulary import Vocabulary

generator = random.Random(1)
Vocabulary.train(["".join(generator.choices("abcdefgh ", k=200)) for _ in range(5000)], 100)
"""
VOCABULARIES = {kind: Vocabulary.train(LINES, 120, kind) for kind in ("unigram", "bpe")}


@pytest.fixture(params=VOCABULARIES)
def vocabulary(request):
    return VOCABULARIES[request.param]


def test_the_same_lines_make_the_same_model(vocabulary):
    assert Vocabulary.train(LINES, 120, vocabulary.kind).digest == vocabulary.digest
    assert len(vocabulary) == 120
    assert vocabulary.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]


@pytest.mark.parametrize(
    "lines", [LINES, [f" {line}\r\n" for line in LINES], [line.replace(" ", "\n") for line in LINES]]
)
def test_it_is_what_sentencepiece_learns_in_one_process(vocabulary, lines):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=120, model_type=vocabulary.kind, pad_id=PAD,
        unk_id=UNK, bos_id=BOS, eos_id=EOS, character_coverage=1.0, num_threads=1, max_sentence_length=65_536,
        minloglevel=2,
    )  # fmt: skip
    assert Vocabulary.train(lines, 120, vocabulary.kind).digest == Vocabulary(model.getvalue()).digest


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it goes on until it would hand the model over")
@pytest.mark.slow
def test_training_ends_with_the_process_that_waits_for_it():
    waiting = subprocess.Popen([sys.executable, "-c", SLOW])
    until = time.monotonic() + 100
    while not (training := [one for one in psutil.Process(waiting.pid).children() if one.cpu_times().user > 1]):
        assert waiting.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    waiting.kill()
    waiting.wait()
    _, going_on = psutil.wait_procs(training, timeout=10)
    for one in going_on:
        one.kill()
    assert going_on == []


def test_the_kind_is_read_from_the_model():
    assert {kind: vocabulary.kind for kind, vocabulary in VOCABULARIES.items()} == {"unigram": "unigram", "bpe": "bpe"}


def test_decoding_reverses_encoding(vocabulary):
    ids = vocabulary.encode(LINES)
    assert vocabulary.decode(ids) == LINES
    assert vocabulary.decode([[BOS, *ids[0], EOS, PAD, PAD]]) == [LINES[0]]
    assert "".join(vocabulary.pieces(ids[0])).replace("▁", " ").strip() == LINES[0]


def test_saved_and_pickled_it_is_the_same(vocabulary, tmp_path):
    vocabulary.save(tmp_path / "joint.model")
    for copy in (Vocabulary.load(tmp_path / "joint.model"), pickle.loads(pickle.dumps(vocabulary))):
        assert copy.digest == vocabulary.digest
        assert copy.encode(LINES[:20]) == vocabulary.encode(LINES[:20])


def test_draws_are_a_function_of_the_generator(vocabulary):
    line = max(LINES, key=len)
    draws = [vocabulary.sample(line, 0.3, np.random.default_rng(seed)) for seed in range(30)]
    assert draws == [vocabulary.sample(line, 0.3, np.random.default_rng(seed)) for seed in range(30)]
    assert len(set(map(tuple, draws))) > 2
    assert set(vocabulary.decode(draws)) == {line}


def test_unigram_draws_follow_the_probabilities():
    vocabulary, line, alpha = VOCABULARIES["unigram"], LINES[0], 0.5
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.__reduce__()[1][0])
    # SentencePiece's own scores of its n best are the independent reference.
    best = processor.nbest_encode([line], out_type="proto", nbest_size=4)[0].nbests
    weights = np.exp(alpha * np.array([candidate.score for candidate in best]))
    generator = random.Random(7)
    draws = [tuple(vocabulary.sample(line, alpha, generator, nbest=4)) for _ in range(4000)]
    counts = np.array([draws.count(tuple(piece.id for piece in candidate.pieces)) for candidate in best])
    assert counts.sum() == 4000
    np.testing.assert_allclose(counts / 4000, weights / weights.sum(), atol=4 * 0.5 / np.sqrt(4000))


def test_bpe_without_dropout_is_sentencepieces_own():
    vocabulary = VOCABULARIES["bpe"]
    lines = [*LINES, "", "  ba  ku ", "漢字 ba 漢", "Ku▁mi", "bakuX-Ysing"]
    assert [vocabulary.sample(line, 0.0, random.Random(1)) for line in lines] == vocabulary.encode(lines)
    characters = vocabulary.pieces(vocabulary.sample("baku", 1.0, random.Random(1)))
    assert characters == ["▁", "b", "a", "k", "u"]
    with pytest.raises(TextError, match="probability"):
        vocabulary.sample("baku", 1.5, random.Random(1))


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_what_cannot_be_learnt_is_explained(kind):
    with pytest.raises(TextError, match=r"90000 pieces were asked for, but the text holds only (\d+)") as raised:
        Vocabulary.train(LINES, 90_000, kind)
    most = int(str(raised.value).split("holds only ")[1].split()[0])
    assert len(Vocabulary.train(LINES, most, kind)) == most
    with pytest.raises(TextError, match="5 pieces were asked for, but the characters alone need"):
        Vocabulary.train(LINES, 5, kind)
    with pytest.raises(TextError, match="every line is empty"):
        Vocabulary.train(["", " "], 50, kind)


def test_foreign_models_are_refused(tmp_path):
    prefix = tmp_path / "foreign"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_prefix=str(prefix), vocab_size=100, minloglevel=2
    )
    with pytest.raises(TextError, match=r"foreign\.model: .*--pad_id=0 --unk_id=1"):
        Vocabulary.load(f"{prefix}.model")
    (tmp_path / "broken.model").write_bytes(b"no model")
    with pytest.raises(TextError, match=r"broken\.model: not a usable SentencePiece model"):
        Vocabulary.load(tmp_path / "broken.model")
