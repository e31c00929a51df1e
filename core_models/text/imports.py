"""Parallel text by name: Hugging Face `datasets` translation sets and sacreBLEU's test sets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .parallel import ParallelText, TextError, check_documents, read_lines

_NO_TEXT = re.compile(r"[\r\n\0]+")


def import_huggingface(
    name_or_path: str | Path,
    source_language: str,
    target_language: str,
    split: str,
    configuration: str | None = None,
    document_column: str | None = None,
) -> ParallelText:
    """Load a split of a translation set by its name on the hub, or from a local folder (also of `save_to_disk`).

    A record has `translation: {en: …, de: …}` or a column for each language. A line end (or a NUL) within a sentence
    becomes a space. configuration: the set's name of a variant, e.g. `de-en`. Needs the extra `datasets`.
    """
    records = _load_records(str(name_or_path), split, configuration)
    columns = [_column(records, language, name_or_path) for language in (source_language, target_language)]
    if document_column is not None and document_column not in records.column_names:
        raise TextError(f"{name_or_path}: no column {document_column!r}; there is {', '.join(records.column_names)}.")
    documents = None if document_column is None else [str(value) for value in records[document_column]]
    if documents is not None:
        check_documents(documents, f"{name_or_path}[{document_column}]")
    return ParallelText(f"{Path(name_or_path).name}-{split}", columns[0], columns[1], documents)


def _load_records(name_or_path: str, split: str, configuration: str | None) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise TextError(
            "Hugging Face sets need the `datasets` library: run `pip install 'nmt-workbench[datasets]'`."
        ) from error
    folder = Path(name_or_path)
    try:
        if (folder / "dataset_dict.json").is_file():
            return datasets.load_from_disk(name_or_path)[split]
        if (folder / "dataset_info.json").is_file() and (folder / "state.json").is_file():
            return datasets.load_from_disk(name_or_path)
        return datasets.load_dataset(name_or_path, configuration, split=split)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise TextError(
            f"Hugging Face set {name_or_path!r} (configuration {configuration}, split {split!r}) could not be loaded: "
            f"{error} Check the names, or, without a network, give the path of a local copy."
        ) from error


def _column(records: Any, language: str, where: str | Path) -> list[str]:
    if "translation" in records.column_names:
        translations: Iterable[Mapping[str, str | None]] = records["translation"]
        values = [translation.get(language) for translation in translations]
    elif language in records.column_names:
        values = list(records[language])
    else:
        raise TextError(
            f"{where}: no column 'translation' and none {language!r}; there is {', '.join(records.column_names)}."
        )
    sentences = []
    for number, value in enumerate(values):
        if not isinstance(value, str):
            raise TextError(f"{where}: record {number} (from 0) has no text in {language!r} but {value!r}.")
        sentences.append(_NO_TEXT.sub(" ", value))
    return sentences


def import_sacrebleu(test_set: str, pair: str) -> ParallelText:
    """Load a test set by sacreBLEU's name (`wmt17`) and pair (`en-de`), with its first reference and its document ids.

    sacreBLEU fetches it once into its own folder (the environment variable SACREBLEU, else `~/.sacrebleu`).
    """
    from sacrebleu import dataset

    if test_set not in dataset.DATASETS:
        raise TextError(f"sacreBLEU has no test set {test_set!r}; it has {', '.join(sorted(dataset.DATASETS))}.")
    dataset_entry = dataset.DATASETS[test_set]
    if pair not in dataset_entry.langpairs:
        raise TextError(
            f"sacreBLEU's {test_set} has no pair {pair!r}; it has {', '.join(sorted(dataset_entry.langpairs))}."
        )
    try:
        # Some formats know their fields only from the fetched file, so this may fetch too.
        fields = dict(zip(dataset_entry.fieldnames(pair), dataset_entry.get_files(pair), strict=True))
        references = dataset_entry.get_reference_files(pair)
    except (OSError, SystemExit) as error:  # sacreBLEU ends the process where a download is broken
        raise TextError(
            f"sacreBLEU's {test_set} {pair} is not on this machine and could not be fetched ({error}); connect to the "
            "network, or copy the set into sacreBLEU's folder (environment variable SACREBLEU, else ~/.sacrebleu)."
        ) from error
    documents = read_lines(fields["docid"]) if "docid" in fields else None
    if documents is not None and not any(documents):
        documents = None  # the field exists but is empty
    if documents is not None:
        check_documents(documents, fields["docid"])
    name = f"{test_set.replace('/', '_')}.{pair}"
    return ParallelText(name, read_lines(fields["src"]), read_lines(references[0]), documents)
