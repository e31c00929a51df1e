"""Checkpoints of fairseq as runs: a copy in our own format, which is from then on a run like every other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core_models.checkpoint import write_tensors
from core_models.config import CONFIG, WEIGHTS, RunConfig, SearchConfig, TrainingConfig
from core_models.fairseq import converted, read_checkpoint
from core_models.files.atomic_folders import anything, atomic_replace_folder
from core_models.settings import ConfigError, write_yaml
from core_models.text.dictionary_vocabulary import DictionaryVocabulary, read_codes, read_dictionary
from core_models.text.prepared import Prepared
from workbench.export.plain_transformer import refuse_taken
from workbench.store.runs import Run, open_run

# What fairseq-generate does unless told otherwise: beam 5, scores divided by length, at most 200 pieces.
SEARCH = SearchConfig(beam=5, length_penalty=1.0, penalty="power", max_length=200, length_factor=1000.0)


def open_fairseq(
    checkpoint: Path,
    folder: Path,
    dictionaries: tuple[Path, Path],
    codes: tuple[Path | None, Path | None] = (None, None),
    data: Path | None = None,
) -> Run:
    """Write a run that is a copy of a checkpoint; dictionaries and BPE codes are of source and target.

    data: prepared data with the test sets that it can translate. Raises RunError if `folder` exists, ConfigError for a
    checkpoint that cannot be opened, TextError for a dictionary or codes that are none.
    """
    refuse_taken(folder)
    arguments, tensors = read_checkpoint(checkpoint)
    vocabularies = [
        DictionaryVocabulary.of(read_dictionary(words), () if merges is None else read_codes(merges))
        for words, merges in zip(dictionaries, codes, strict=True)
    ]
    model, parameters = converted(arguments, tensors, str(checkpoint))
    tables = ("backbone.source_table.weight", "backbone.target_table.weight")
    _check_sizes(vocabularies, [len(parameters[table]) for table in tables], dictionaries)
    longest = min(SEARCH.max_length, model.max_positions - 1)  # a translation that was cut is read with one word more
    source, target = vocabularies
    config = RunConfig(
        name=folder.name,
        system=arguments.arch,
        data="" if data is None else str(Prepared.open(data).folder.resolve()),
        model=model,
        training=TrainingConfig(max_steps=1),
        search=SEARCH.model_copy(update={"max_length": longest}),
        vocabulary={"source": source.digest, "target": target.digest},
    )
    with atomic_replace_folder(folder, "open fairseq", anything) as unfinished:
        (unfinished / "vocabulary").mkdir()
        source.save(unfinished / "vocabulary" / "source.model")
        target.save(unfinished / "vocabulary" / "target.model")
        write_tensors(unfinished / WEIGHTS, parameters)
        write_yaml(unfinished / CONFIG, config.model_dump(mode="json", exclude_none=True))
    return open_run(folder)


def _check_sizes(vocabularies: Sequence[DictionaryVocabulary], rows: Sequence[int], paths: Sequence[Path]) -> None:
    for vocabulary, count, path in zip(vocabularies, rows, paths, strict=True):
        if len(vocabulary) != count:
            raise ConfigError(
                f"{path}: {len(vocabulary.words)} words and 4 of its own, and the checkpoint has {count} embeddings; "
                "give the dict.txt that it was trained with"
            )
