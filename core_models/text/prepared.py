"""The folder of prepared text: vocabularies, binarized train and dev, test sets; preparing and opening it.

Opening reads the manifest only.

    data.yaml       the manifest: a folder without it is no prepared text
    vocabulary/     joint.model, or source.model and target.model
    train/, dev/    see mmap_arrays.py
    tests/          NAME.source, NAME.target, NAME.docids, NAME.truth.jsonl: plain text, every sentence
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import BaseModel

from core_models.files.atomic_folders import atomic_replace_folder, mend, others
from core_models.settings import ConfigError, parse, read_yaml
from core_models.text.mmap_arrays import SIDES, BinaryText, SideWriter, write_documents

from .parallel import ParallelText, TextError, check_documents, stored_lines, write_lines
from .vocabulary import Vocabulary

__all__ = ["BinaryText", "Prepared", "prepare"]

FORMAT = 1
MANIFEST = "data.yaml"
_EARLIER = ".unfinished"  # where earlier versions prepared text before moving it
_ROOMS = ("vocabulary", "train", "dev", "tests")
_OURS = re.compile(
    r"data\.yaml|vocabulary/(joint|source|target)\.model|(train|dev)/((source|target)\.\w+|documents|positions)\.npy"
)
_TEST_FILES = (".source", ".target", ".docids", ".truth.jsonl")
_LOCK_SECONDS = 1.0  # longer than a reader's repair takes
_CHUNK = 20_000  # sentences segmented at once
_TEST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
Report = Callable[[int, int, str], None]  # (pairs done, pairs in all, current work)
_NAMED_LINES = 10  # at most so many left-out lines are named


class _VocabularyEntry(BaseModel):
    joint: bool


class _TestEntry(BaseModel):
    sentences: int
    source: bool
    target: bool
    docids: bool
    truth: bool


class _Manifest(BaseModel):
    """The keys read from a manifest; it has more."""

    digest: str
    vocabulary: _VocabularyEntry
    splits: dict[str, dict[str, Any]]
    tests: dict[str, _TestEntry]


@dataclass(frozen=True)
class Prepared:
    """A prepared folder: its manifest, vocabularies, binarized splits and test sets."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, folder: str | Path) -> Prepared:
        """Open a prepared folder; raises TextError if it is missing, unfinished or of another format."""
        folder = mend(folder)
        if not (folder / MANIFEST).is_file():
            why = f"{MANIFEST} is missing, so it was not finished" if folder.is_dir() else "there is no such folder"
            raise TextError(f"{folder}: not prepared text: {why}; prepare it (again).")
        try:
            manifest = read_yaml(folder / MANIFEST)
            if manifest.get("format") != FORMAT:
                raise ConfigError(f"{folder / MANIFEST}: not a manifest of format {FORMAT}")
            parse(_Manifest, manifest, where=str(folder / MANIFEST))
            for name in manifest["tests"]:
                _check_test_name(name)
        except (ConfigError, TextError) as error:
            raise TextError(f"{error}; prepare the text again.") from None
        return cls(folder, manifest)

    @property
    def digest(self) -> str:
        """SHA-256 of vocabularies, texts and settings: equal digests mean equal data."""
        return self.manifest["digest"]

    @property
    def splits_digest(self) -> str:
        """SHA-256 of what is trained and validated on: equal digests mean equal train and dev splits."""
        return hashlib.sha256(yaml.safe_dump(self.manifest["splits"]).encode()).hexdigest()

    @property
    def joint(self) -> bool:
        """True if both sides share one vocabulary."""
        return self.manifest["vocabulary"]["joint"]

    @cached_property
    def source_vocabulary(self) -> Vocabulary:
        return Vocabulary.load(self.folder / "vocabulary" / ("joint.model" if self.joint else "source.model"))

    @cached_property
    def target_vocabulary(self) -> Vocabulary:
        if self.joint:
            return self.source_vocabulary
        return Vocabulary.load(self.folder / "vocabulary" / "target.model")

    def split(self, name: str) -> BinaryText:
        """The binarized split `train` or `dev`."""
        if name not in self.manifest["splits"]:
            raise TextError(f"{self.folder}: no split {name!r}; there is {', '.join(self.manifest['splits'])}.")
        return BinaryText(self.folder / name)

    @property
    def test_names(self) -> list[str]:
        """The names of the test sets, `dev` first."""
        return list(self.manifest["tests"])

    def test(self, name: str) -> ParallelText:
        """A complete test set as text."""
        known = self._test_entry(name)
        sources, targets, documents = (
            stored_lines(self.folder / "tests" / f"{name}.{suffix}") if known[suffix] else None
            for suffix in ("source", "target", "docids")
        )
        return ParallelText(name, sources or [], targets, documents)

    def truth(self, name: str) -> Path | None:
        """The file of truth records of a test set, or None."""
        known = self._test_entry(name)
        return self.folder / "tests" / f"{name}.truth.jsonl" if known["truth"] else None

    def _test_entry(self, name: str) -> dict[str, Any]:
        if name not in self.manifest["tests"]:
            raise TextError(f"{self.folder}: no test set {name!r}; there is {', '.join(self.test_names)}.")
        return self.manifest["tests"][name]


def prepare(
    folder: str | Path,
    train: ParallelText,
    dev: ParallelText,
    tests: Mapping[str, ParallelText] | None = None,
    pieces: int = 8000,
    kind: str = "unigram",
    joint: bool = True,
    source_language: str = "",
    target_language: str = "",
    max_length: int = 256,
    truths: Mapping[str, Path] | None = None,
    character_coverage: float = 1.0,
    seed: int = 1,
    report: Report | None = None,
) -> Prepared:
    """Train the vocabulary, binarize train and dev, and copy the test sets.

    pieces: size of the joint vocabulary, or of each side's. max_length: pieces per sentence; a pair with a longer or an
    empty side is left out of train and dev and counted in the manifest. truths: test name -> its `.jsonl` file. report:
    called with the pairs done, their total and the current work.
    A call that fails or is interrupted leaves an earlier preparation unchanged. Raises FolderError if the folder has
    other files, or another process is preparing it.
    """
    folder, truths = Path(folder), truths or {}
    sets = {"dev": dev, **(tests or {})}
    _check(train, dev, sets, truths)
    say = report or (lambda done, total, note: None)
    with atomic_replace_folder(folder, "data prepare", _foreign, _LOCK_SECONDS) as part:
        for room in _ROOMS:
            (part / room).mkdir()
        say(0, len(train), "vocabulary")
        vocabularies = _train_vocabularies(train, pieces, kind, joint, character_coverage, seed)
        for name, vocabulary in zip(("joint",) if joint else SIDES, vocabularies, strict=True):
            vocabulary.save(part / "vocabulary" / f"{name}.model")
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "source_language": source_language,
            "target_language": target_language,
            "vocabulary": {
                "joint": joint,
                "kind": kind,
                "pieces": [len(vocabulary) for vocabulary in vocabularies],
                "digests": [vocabulary.digest for vocabulary in vocabularies],
            },
            "max_length": max_length,
            "splits": {
                name: _binarize(part / name, text, vocabularies[0], vocabularies[-1], max_length, say)
                for name, text in (("train", train), ("dev", dev))
            },
            "tests": {name: _write_test(part / "tests", name, text, truths.get(name)) for name, text in sets.items()},
        }
        manifest["digest"] = hashlib.sha256(yaml.safe_dump(manifest).encode()).hexdigest()
        write_lines(part / MANIFEST, yaml.safe_dump(manifest, sort_keys=False).rstrip("\n").split("\n"))
    return Prepared.open(folder)


def _check(
    train: ParallelText, dev: ParallelText, sets: Mapping[str, ParallelText], truths: Mapping[str, Path]
) -> None:
    if sets["dev"] is not dev:
        raise TextError("a test set may not be called 'dev': the dev text itself is available under that name.")
    for text in (train, dev):
        if text.targets is None:
            raise TextError(f"{text.name}: training and dev text need translations.")
    for text in (train, *sets.values()):
        if text.documents is not None:
            check_documents(text.documents, text.name)
    for name in sets:
        _check_test_name(name)
    if strangers := truths.keys() - sets.keys():
        raise TextError(f"truths for {', '.join(sorted(strangers))}, but there are only {', '.join(sets)}.")


def _check_test_name(name: str) -> None:
    if not _TEST_NAME.fullmatch(name):
        raise TextError(f"test set {name!r}: the name is used as a file name; use letters, digits and . _ + -.")


def _foreign(folder: Path) -> str | None:
    """The first file in a folder that is not from a preparation; without a manifest, any file."""
    tests: set[str] = set()
    known = False
    for candidate in (folder, folder / _EARLIER):
        try:
            manifest = parse(_Manifest, read_yaml(candidate / MANIFEST), where=MANIFEST)
        except ConfigError:
            continue
        known = True
        tests |= set(manifest.tests)

    def ours(name: str) -> bool:
        name = name.removeprefix(f"{_EARLIER}/")
        room, _, rest = name.partition("/")
        if room == "tests" and rest:
            return rest.endswith(_TEST_FILES) and any(rest.startswith(f"{test}.") for test in tests)
        return not name or (room in _ROOMS and not rest) or _OURS.fullmatch(name) is not None

    return others(folder, lambda name: known and ours(name))


def _train_vocabularies(
    train: ParallelText, pieces: int, kind: str, joint: bool, character_coverage: float, seed: int
) -> list[Vocabulary]:
    sides: list[Iterable[str]] = [train.sources, train.targets or []]
    if joint:
        sides = [chain.from_iterable(zip(*sides, strict=True))]
    try:
        return [Vocabulary.train(lines, pieces, kind, character_coverage, seed) for lines in sides]
    except TextError as error:
        raise TextError(f"{train.name}: {error}") from None


def _binarize(
    folder: Path,
    text: ParallelText,
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    max_length: int,
    say: Report,
) -> dict[str, Any]:
    vocabularies, lines = (source_vocabulary, target_vocabulary), (text.sources, text.targets or [])
    writers = [SideWriter(folder, side, len(v), max_length) for side, v in zip(SIDES, vocabularies, strict=True)]
    left_out, kept_rows = {"too_long": 0, "empty": 0}, []
    left_out_lines: dict[str, list[int]] = {why: [] for why in left_out}
    for start in range(0, len(text), _CHUNK):
        chunk = [side[start : start + _CHUNK] for side in lines]
        ids = [vocabulary.encode(side) for vocabulary, side in zip(vocabularies, chunk, strict=True)]
        lengths = np.array([[len(sentence) for sentence in side] for side in ids])
        empty, too_long = lengths.min(axis=0) == 0, lengths.max(axis=0) > max_length
        for why, is_left_out in (("empty", empty), ("too_long", too_long & ~empty)):
            rows = start + 1 + np.flatnonzero(is_left_out)
            left_out[why] += len(rows)
            left_out_lines[why] += rows[: _NAMED_LINES - len(left_out_lines[why])].tolist()
        kept_columns = np.flatnonzero(~empty & ~too_long)
        for side, writer in enumerate(writers):
            writer.append([ids[side][i] for i in kept_columns], [chunk[side][i] for i in kept_columns])
        kept_rows.append(start + kept_columns)
        say(start + len(chunk[0]), len(text), text.name)
    digests = {side: writer.close() for side, writer in zip(SIDES, writers, strict=True)}
    if sum(map(len, kept_rows)) == 0:
        raise TextError(
            f"{text.name}: none of its {len(text)} pairs is left: {left_out['too_long']} are too long (max_length "
            f"{max_length}) and {left_out['empty']} empty; raise "
            "max_length, or give text that is not empty."
        )
    rows = np.concatenate(kept_rows)
    if text.documents is not None:
        digests["documents"] = write_documents(folder, text.documents, rows)
    return {
        "name": text.name,
        "sentences": len(rows),
        "left_out": left_out,
        "left_out_lines": left_out_lines,
        "source_tokens": writers[0].token_count,
        "target_tokens": writers[1].token_count,
        "digests": digests,
    }


def _write_test(folder: Path, name: str, text: ParallelText, truth: Path | None) -> dict[str, Any]:
    digest = hashlib.sha256()
    contents = {"source": text.sources, "target": text.targets, "docids": text.documents}
    for suffix, lines in contents.items():
        if lines is not None:
            write_lines(folder / f"{name}.{suffix}", lines)
            digest.update((folder / f"{name}.{suffix}").read_bytes())
    if truth is not None:
        shutil.copyfile(truth, folder / f"{name}.truth.jsonl")
        digest.update(Path(truth).read_bytes())
    present = {suffix: lines is not None for suffix, lines in contents.items()}
    return {"sentences": len(text), **present, "truth": truth is not None, "digest": digest.hexdigest()}
