"""Translations of a test set by one run, read lazily: one line per sentence in each file.

    RESULTS/translations/TEST/{meta.json, sources.txt, references.txt, documents.txt, hypotheses.txt, details.jsonl,
                               truth.jsonl, trees.jsonl, trees.npy}
    Further references are references.2.txt and so on. Translations made elsewhere have no details, truth or trees.

Knows one such folder and the records in its files, not the run it belongs to. Never imports torch.
"""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from core_models.files.atomic_folders import mend
from core_models.files.npy import map_array
from core_models.files.run_files import LINES, RECORD, TREE, TREES, open_file, parse_json, read_json
from workbench.store.errors import RunError
from workbench.store.file_cache import KeptByFiles
from workbench.store.file_digests import stamp_of
from workbench.store.line_cache import lines_of
from workbench.store.translation_records import Detail, Meta, Tree, check, check_truth

_TRUTHS: KeptByFiles[list[dict[str, Any]]] = KeptByFiles(64)
_DETAILS: KeptByFiles[list[dict[str, Any]]] = KeptByFiles(16)
OUTDATED_TRACES = "outdated_traces"  # in meta.json: the stamp of traces that were there, of other translations


@dataclass(frozen=True)
class TestSet:
    """A test set as a run translated it: sentences are lines, `truth` is there for the controlled corpus.

    `more_references` are those after the first, each with one line per sentence.
    """

    __test__ = False  # pytest would take it for a class of tests, by its name

    name: str
    sources: list[str]
    references: list[str] | None
    documents: list[str] | None
    more_references: tuple[list[str], ...] = ()

    @property
    def all_references(self) -> list[list[str]]:
        """Every reference, one line per sentence each; empty for a test set without references."""
        return [] if self.references is None else [self.references, *self.more_references]


class Translations:
    """The translations of one test set by one run, read lazily from RUN/translations/TEST.

    run: its name on the command line, for commands in messages.
    """

    def __init__(self, folder: Path, run: str = "RUN") -> None:
        self.folder, self.test, self._run = mend(folder), folder.name, run
        try:
            self.meta: dict[str, Any] = read_json(self.folder / "meta.json", RECORD)
            check(Meta, self.meta)
            self._sentences: int = self.meta["sentences"]
        except (OSError, ValueError) as error:
            raise RunError(
                f"{folder}: no finished translation here ({_cause(error)}); translate the test set again"
            ) from None

    def __len__(self) -> int:
        return self._sentences

    @cached_property
    def test_set(self) -> TestSet:
        more = itertools.takewhile(
            lambda lines: lines is not None, map(self._lines, map(reference_file, itertools.count(2)))
        )
        return TestSet(
            self.test,
            self._needed("sources.txt"),
            self._lines(reference_file(1)),
            self._lines("documents.txt"),
            tuple(lines for lines in more if lines is not None),
        )

    @cached_property
    def hypotheses(self) -> list[str]:
        return self._needed("hypotheses.txt")

    @cached_property
    def details(self) -> list[dict[str, Any]]:
        """One record per sentence: tokens, source_tokens, score, log_prob, token_log_probs, finished, n_best.

        Kept while the file is the same, since a page asks for it several times: do not change the records.
        """
        if self.outside:
            raise RunError(f"{self.folder}: translated elsewhere, so only the texts are known, not how they came about")
        path = self.folder / "details.jsonl"
        records = _DETAILS.get(path, [path], lambda: list(_checked(path, read_records(path), partial(check, Detail))))
        return self._whole(path, records)

    @property
    def outside(self) -> bool:
        """Return True if they were made elsewhere."""
        return not self._has("details.jsonl") and "from" in self.meta

    @cached_property
    def truth(self) -> list[dict[str, Any]] | None:
        """The truth record of each sentence, checked against the texts; None if the test set has none.

        Kept while the files are the same, since a page asks for it several times: do not change the records.
        """
        if not self._has("truth.jsonl"):
            return None
        path, test_set = self.folder / "truth.jsonl", self.test_set
        files = [path, self.folder / "sources.txt", self.folder / reference_file(1)]
        return _TRUTHS.get(path, files, lambda: read_truth(path, test_set.sources, test_set.references))

    @property
    def has_trees(self) -> bool:
        return self._has("trees.npy")

    @cached_property
    def trees(self) -> int:
        """The number of sentences, from the first, whose beam tree is recorded."""
        try:
            return len(map_array(self.folder / "trees.npy")) - 1
        except (OSError, ValueError):  # missing or damaged: reported where a tree is read
            return len(self) if self.has_trees else 0

    def tree(self, sentence: int) -> dict[str, Any]:
        """The recorded search of a sentence; raises RunError with the command that records it."""
        if self.outside:
            raise RunError(f"{self.folder.parent.parent.name} was translated elsewhere: no search was recorded")
        if not self.has_trees:
            raise RunError(
                f"{self.folder.parent.parent} has no beam trees for {self.test}; record them: "
                f"workbench translate {self._run} --test {shlex.quote(self.test)} --save-beams"
            )
        from analyses import beam

        if not 0 <= sentence < len(self):
            raise RunError(f"{self.test} has sentences 0 to {len(self) - 1}, not {sentence}")
        if sentence >= self.trees:
            raise RunError(
                f"{self.folder.parent.parent} has beam trees of the first {self.trees} sentences of {self.test}; "
                f"record all: workbench translate {self._run} --test {shlex.quote(self.test)} --save-beams"
            )
        try:
            starts = map_array(self.folder / "trees.npy")
            begin, end = int(starts[sentence]), int(starts[sentence + 1])
            with open_file(self.folder / "trees.jsonl", TREES) as file:
                if not 0 <= begin <= end <= os.fstat(file.fileno()).st_size:
                    raise ValueError(f"bytes {begin} to {end} are outside of trees.jsonl")
                if end - begin > TREE:
                    raise ValueError(f"its record has {end - begin} bytes")
                file.seek(begin)
                tree = _record(file.read(end - begin))
            check(Tree, tree)
            beam.check(tree)
            return tree
        except (OSError, ValueError, TypeError, IndexError, OverflowError) as error:
            raise RunError(
                f"{self.folder / 'trees.npy'}: the tree of sentence {sentence} cannot be read ({_cause(error)}); "
                "translate the test set again with --save-beams"
            ) from None

    def outdates(self, traces: Path) -> bool:
        """Return True if the traces in a folder are of earlier translations, which these have replaced."""
        index, noted = traces / "index.json", self.meta.get(OUTDATED_TRACES)
        return noted is not None and index.is_file() and noted == stamp_of(index)

    def _has(self, name: str) -> bool:
        """Return True if an entry of this name exists, file or not."""
        return os.path.lexists(self.folder / name)

    def _needed(self, name: str) -> list[str]:
        lines = self._lines(name)
        if lines is None:
            raise RunError(f"{self.folder / name} is missing; bring it back, or translate the test set again")
        return lines

    def _lines(self, name: str) -> list[str] | None:
        path = self.folder / name
        return self._whole(path, lines_of(path)) if self._has(name) else None

    def _whole(self, path: Path, records: list[Any]) -> list[Any]:
        """The records of a file after checking that there is one for every sentence of the test set."""
        if len(records) != len(self):
            raise RunError(
                f"{path} has {len(records)} lines, but the test set {self.test} has {len(self)} sentences, and each "
                "line is one sentence's: mend the file, or translate the test set again"
            )
        return records


def reference_file(number: int) -> str:
    """The file name of a reference, counted from 1."""
    return "references.txt" if number == 1 else f"references.{number}.txt"


def read_records(path: Path, tolerant: bool = False) -> Iterator[dict[str, Any]]:
    """Read one record per line; tolerant: skip damaged lines, such as one cut short by a killed process."""
    with open_file(path, LINES) as file:
        for number, line in enumerate(file, start=1):
            if line == b"\n":
                continue
            try:
                yield _record(line)
            except ValueError as error:
                if not tolerant:
                    raise RunError(f"{path}:{number}: not a JSON record ({error}); write the file again") from None


def _checked(
    path: Path, records: Iterable[dict[str, Any]], check_one: Callable[..., None], *texts: Sequence[str | None]
) -> Iterator[dict[str, Any]]:
    """Yield records that fit their schema and the texts of their line; raises RunError at the first that does not."""
    for number, (record, *line_texts) in enumerate(zip(records, *texts, strict=False), start=1):
        try:
            check_one(record, *line_texts)
        except ValueError as error:
            raise RunError(f"{path}:{number}: {error}; mend the file, or translate the test set again") from None
        yield record


def read_truth(path: Path, sources: Sequence[str], references: Sequence[str] | None) -> list[dict[str, Any]]:
    """Read the truth record of every sentence of a test set; raises RunError if one does not fit the texts."""
    records = list(read_records(path))
    if len(records) != len(sources):
        raise RunError(
            f"{path} has {len(records)} lines, but the test set has {len(sources)} sentences, and each line is one "
            "sentence's: mend the file, or prepare the test set again"
        )
    return list(_checked(path, records, check_truth, sources, references or [None] * len(sources)))


def _cause(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}"


def _record(line: bytes) -> dict[str, Any]:
    """Parse one record; raises ValueError for invalid UTF-8 or JSON, too deep nesting, or anything but an object."""
    record = parse_json(line)
    if not isinstance(record, dict):
        raise ValueError(f"a {type(record).__name__}")
    return record
