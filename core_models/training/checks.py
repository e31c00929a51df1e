"""What is refused before the first step of a training, since it would fail at that step or at a validation."""

from __future__ import annotations

import random

from core_models.config import RunConfig, TrainingConfig
from core_models.decoding.inputs import EncodedInputs
from core_models.decoding.quantization import check_quantizable
from core_models.settings import ConfigError
from core_models.system import System
from core_models.text.batch_loader import BatchLoader
from core_models.text.parallel import TextError
from core_models.text.prepared import Prepared
from core_models.text.vocabulary import Vocabulary
from core_models.training.reinforce import Reward
from core_models.training.validation import Score


def check_decoding(config: RunConfig, system: System, score: Score | None, reward: Reward | None) -> None:
    """Raise ConfigError for settings that would fail at the first step or at the first validation."""
    metric, weight = config.training.early_stopping.metric, config.training.adequacy.weight
    if reward is None and (weight or metric == "adequacy"):
        option = "adequacy.weight" if weight else "early_stopping.metric: adequacy"
        raise ConfigError(f"{option} needs a reward function handed to fit(reward=...)")
    system.with_test_loss(config.search.test_loss)  # raises ConfigError if it is impossible
    if metric == "loss":
        return
    if score is None and metric != "adequacy":
        raise ConfigError(f"early_stopping.metric: {metric} needs a score function handed to fit(score=...)")
    if config.search.precision == "int8":
        check_quantizable(system)


def check_sampling(training: TrainingConfig, vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
    """Raise TextError for a `subword_alpha` with which a vocabulary samples no segmentations."""
    if training.subword_alpha is not None:
        for vocabulary in vocabularies:
            vocabulary.sample("a", training.subword_alpha, random.Random(0))


def check_context(training: TrainingConfig, system: System, prepared: Prepared) -> None:
    """Raise an error for a context that the system does not read, and for texts without the context it reads."""
    requested, read = training.context_sentences, system.context.sentences
    if requested and requested != read:
        what = f"reads {read}: set the system's own context_sentences" if read else "reads none: take one such as qcn"
        raise ConfigError(f"training.context_sentences: {requested} are asked for and this system {what}")
    for split in ("train", "dev"):
        loader = BatchLoader(prepared.split(split), training.batch_tokens, context=system.context)
        _check_positions(system, f"{prepared.folder / split}", *loader.longest())


def check_dev(
    config: RunConfig, system: System, prepared: Prepared, vocabularies: tuple[Vocabulary, Vocabulary]
) -> None:
    """Raise an error for a dev text that early stopping could not translate; it includes pairs left out of the loss."""
    if config.training.early_stopping.metric == "loss":
        return
    dev = prepared.test("dev")
    try:
        read = EncodedInputs(system.context, vocabularies, dev.sources, dev.documents)
    except TextError as error:
        raise TextError(f"dev, whose translations early stopping watches: {error}") from None
    _check_positions(system, "dev, whose translations early stopping watches", max(map(len, read.pieces)) + 1)


def _check_positions(system: System, where: str, source: int, target: int = 0) -> None:
    """Raise ConfigError for sentences with more positions (with EOS) than are learned."""
    for needed, room in zip((source, target), system.config.room, strict=True):
        if needed > room:
            raise ConfigError(
                f"{where}: a sentence needs {needed} positions, that of </s> counted, and this model "
                f"learns {room}; raise max_positions, or prepare with a smaller max_length"
            )
