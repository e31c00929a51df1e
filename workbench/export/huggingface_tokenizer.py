"""A SentencePiece vocabulary as a tokenizer of Hugging Face: the same pieces, the same text, `tokenizer.json` alone.

Knows the model file's format and the package `tokenizers`; nothing of the translation model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core_models.text.vocabulary import BOS, EOS, PAD, UNK, Vocabulary
from workbench.store.runs import RunError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPACE = "▁"
UNKNOWN_TEXT = " ⁇ "  # what SentencePiece writes for the unknown piece
# The score of control pieces in a text: below that of their characters, so that "</s>" is these four characters. Only
# where one of them is unknown, which scores lower still, it is the control piece.
NEVER = -1e4
UNIGRAM, BPE = 1, 2  # sentencepiece_model.proto, TrainerSpec.ModelType
NORMAL, UNKNOWN, CONTROL = 1, 2, 3  # ModelProto.SentencePiece.Type


def huggingface_tokenizer(vocabulary: Vocabulary, longest: int) -> Any:
    """The vocabulary as a fast tokenizer that ends every text with </s>; longest: pieces it warns beyond.

    Raises RunError if the SentencePiece model has pieces of a kind that `Vocabulary.train` does not make.
    """
    from transformers import PreTrainedTokenizerFast

    pad, bos, eos = vocabulary.pieces((PAD, BOS, EOS))
    return PreTrainedTokenizerFast(
        tokenizer_object=_tokenizer(vocabulary),
        pad_token=pad,
        bos_token=bos,
        eos_token=eos,  # no unk_token: it would be left out of a decoded text, and here it is " ⁇ "
        split_special_tokens=True,  # "</s>" in a text is text
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=longest,
    )


def _tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    from sentencepiece import sentencepiece_model_pb2
    from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors

    proto = sentencepiece_model_pb2.ModelProto.FromString(vocabulary.model)
    _refuse_other_pieces(proto)
    tokenizer = Tokenizer(_unigram(proto) if proto.trainer_spec.model_type == UNIGRAM else _bpe(proto))
    characters = proto.normalizer_spec.precompiled_charsmap
    tokenizer.normalizer = normalizers.Sequence(
        [
            *([normalizers.Precompiled(characters)] if characters else []),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="always")
    unknown, end = vocabulary.pieces((UNK, EOS))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(unknown, UNKNOWN_TEXT), decoders.Metaspace(SPACE, prepend_scheme="always")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {end}", special_tokens=[(end, EOS)])
    return tokenizer


def _refuse_other_pieces(proto: Any) -> None:
    known = {NORMAL, UNKNOWN, CONTROL}
    others = [piece.piece for piece in proto.pieces if piece.type not in known]
    written = proto.normalizer_spec
    if others or proto.trainer_spec.model_type not in (UNIGRAM, BPE):
        raise RunError(
            f"tokenizer.json would treat pieces of the vocabulary otherwise ({', '.join(others[:3]) or 'words'}): "
            "only unigram and BPE vocabularies without user-defined symbols and bytes can be exported"
        )
    if not (written.add_dummy_prefix and written.remove_extra_whitespaces and written.escape_whitespaces):
        raise RunError(
            "the vocabulary keeps the spaces of a text as they are; only one that joins them, as the workbench's own, "
            "can be exported"
        )


def _unigram(proto: Any) -> Any:
    from tokenizers import models

    scored = [(piece.piece, piece.score if piece.type == NORMAL else NEVER) for piece in proto.pieces]
    return models.Unigram(scored, unk_id=UNK, byte_fallback=False)


def _bpe(proto: Any) -> Any:
    """Byte pair encoding; its merges are all halves of a piece that are pieces, ranked by the piece."""
    from tokenizers import models

    ids = {piece.piece: number for number, piece in enumerate(proto.pieces)}
    ranked = sorted((piece for piece in proto.pieces if piece.type == NORMAL), key=lambda piece: -piece.score)
    halves = ((piece.piece[:cut], piece.piece[cut:]) for piece in ranked for cut in range(1, len(piece.piece)))
    merges = [(left, right) for left, right in halves if left in ids and right in ids]
    return models.BPE(ids, merges, unk_token=proto.pieces[UNK].piece, fuse_unk=True)
