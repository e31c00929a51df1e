"""Parallel text as lists of lines: reading, checking, writing.

Only a line feed, with or without a carriage return before it, ends a line: `str.splitlines` and universal newlines
split at ten more characters (U+2028, NEL, form feed, …), which silently misaligns parallel files.
"""

from __future__ import annotations

import gzip
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from core_models.files.atomic_files import atomic_replace
from core_models.files.file_marks import mended
from core_models.files.run_files import LINES, read_bytes

# Line ends of `str.splitlines` that are not line ends in a corpus.
_FALSE_LINE_ENDS = {
    "\u2028": "U+2028 (line separator)", "\u2029": "U+2029 (paragraph separator)", "\u0085": "U+0085 (NEL)",
    "\x0b": "U+000B (vertical tab)", "\x0c": "U+000C (form feed)", "\x1c": "U+001C", "\x1d": "U+001D",
    "\x1e": "U+001E", "\r": "a bare carriage return",
}  # fmt: skip
_FALSE_LINE_END = re.compile("[" + "".join(_FALSE_LINE_ENDS) + "]")
_BYTE_ORDER_MARK = "\ufeff"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_GZIP_MARK = b"\x1f\x8b"


class TextError(ValueError):
    """Text that cannot be used; the message names the file, the line and what to do."""


@dataclass(frozen=True)
class ParallelText:
    """Sentences, with their translations and document ids if known."""

    name: str
    sources: list[str]
    targets: list[str] | None = None
    documents: list[str] | None = None

    def __post_init__(self) -> None:
        for field, lines in (("targets", self.targets), ("document ids", self.documents)):
            if lines is not None and len(lines) != len(self.sources):
                raise TextError(f"{self.name}: {len(self.sources)} sources but {len(lines)} {field}; need one each.")

    def __len__(self) -> int:
        return len(self.sources)


def read_lines(path: str | Path) -> list[str]:
    """Read a UTF-8 file, plain or `.gz`, as a list of lines without line ends; a byte-order mark is dropped.

    Raises TextError for a missing or empty file, a broken archive and invalid UTF-8 (with the line).
    """
    path = Path(path)
    return split_lines(_read_bytes(mended(path)), path)


def stored_lines(path: str | Path) -> list[str]:
    """`read_lines` for a plain file of a run or of prepared text; never reads a pipe or a device."""
    with _as_text_error(path):
        content = read_bytes(path, LINES)
    return split_lines(content, path)


def split_lines(content: bytes, where: str | Path) -> list[str]:
    """Split UTF-8 text, e.g. from standard input, into lines; see `read_lines`."""
    text = _decode(where, content)
    if not text:  # empty, or only a byte-order mark
        raise TextError(f"{where}: the file is empty: copy it again, or name another.")
    lines = text.split("\n")
    if len(lines) == 1 and "\r" in lines[0].rstrip("\r"):
        raise TextError(
            f"{where}: its lines end in bare carriage returns (an old Macintosh's line end), so it would be read as "
            "one line; convert them to line feeds."
        )
    if lines[-1] == "":
        lines.pop()  # the last line feed ends a line, it does not begin an empty one
    return [line.removesuffix("\r") for line in lines]


def read_parallel(
    source: str | Path,
    target: str | Path | None = None,
    documents: str | Path | None = None,
    name: str | None = None,
) -> ParallelText:
    """Read sentence-aligned files.

    documents: a file with one document id per line; by default `train.docids` (or `.docids.gz`) next to `train.en`, if
    it exists. Raises TextError if the numbers of lines differ, with the first misaligned line.
    """
    source = mended(source)  # before the other files, whose paths depend on it
    sources = read_lines(source)
    targets = None
    if target is not None:
        targets = read_lines(target)
        if len(sources) != len(targets):
            raise TextError(explain_mismatch(source, sources, Path(target), targets))
    ids_path = find_document_ids(source) if documents is None else Path(documents)
    ids = None if ids_path is None else _read_document_ids(ids_path, source, len(sources))
    return ParallelText(name or _stem(source), sources, targets, ids)


def find_document_ids(source: str | Path) -> Path | None:
    """The file of document ids of a text file, its stem + `.docids` or `.docids.gz`; None if absent."""
    folder, stem = Path(source).parent, _stem(Path(source))
    candidates = (folder / f"{stem}.docids", folder / f"{stem}.docids.gz")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def read_tsv(path: str | Path, columns: tuple[int, ...] = (0, 1), name: str | None = None) -> ParallelText:
    """Read tab-separated text; columns (from 0) are the source's, the target's and, if given, the document id's."""
    path = Path(path)
    if len(columns) not in (2, 3) or min(columns) < 0:
        raise TextError(f"columns={columns}: name the source's, the target's and perhaps the document id's column.")
    rows = [line.split("\t") for line in read_lines(path)]
    for number, row in enumerate(rows, start=1):
        if len(row) <= max(columns):
            raise TextError(
                f"{path}:{number}: {len(row)} column{'s' * (len(row) > 1)}, but column {max(columns)} (from 0) was "
                "asked for; put one tab between the fields of every line, also where one is empty."
            )
    fields = [[row[column] for row in rows] for column in columns]
    if len(columns) == 3:
        check_documents(fields[2], str(path))
        return ParallelText(name or _stem(path), fields[0], fields[1], fields[2])
    return ParallelText(name or _stem(path), fields[0], fields[1])


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write lines atomically as UTF-8, gzipped if the name ends in `.gz`."""
    path = Path(path)
    # mtime=0: the same lines give the same bytes
    with (
        atomic_replace(path) as unfinished,
        open(unfinished, "wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw as file,
    ):
        for number, line in enumerate(lines, start=1):
            file.write(_encode(path, number, line))


def _encode(path: Path, number: int, line: str) -> bytes:
    """Encode a line for a file; raises TextError for a line that would not be read back unchanged."""
    forbidden = [name for sign, name in (("\n", "a line end"), ("\0", "a NUL")) if sign in line]
    if number == 1 and line.startswith(_BYTE_ORDER_MARK):
        raise TextError(
            f"{path}:1: the sentence begins with a byte-order mark, which readers drop; remove it: {line!r}."
        )
    if forbidden or line.endswith("\r"):
        raise TextError(
            f"{path}:{number}: the sentence holds {[*forbidden, 'a line end'][0]}; replace it by a space: {line!r}."
        )
    try:
        return line.encode() + b"\n"
    except UnicodeEncodeError:
        raise TextError(
            f"{path}:{number}: half a surrogate pair, which is not a character, in {line!r}; remove it."
        ) from None


def check_documents(documents: Sequence[str], where: str) -> None:
    """Raise TextError for an empty document id or a document that is not contiguous."""
    first_lines: dict[str, int] = {}
    number = 1
    for identifier, run in itertools.groupby(documents):
        if not identifier.strip():
            raise TextError(f"{where}:{number}: no document id; give every sentence one.")
        if identifier in first_lines:
            raise TextError(
                f"{where}:{number}: document {identifier!r} begins again (its first run began at line "
                f"{first_lines[identifier]}); a document is one unbroken run of lines: sort the lines or rename it."
            )
        first_lines[identifier] = number
        number += sum(1 for _ in run)


def _read_document_ids(path: Path, source: Path, sentences: int) -> list[str]:
    documents = read_lines(path)
    if len(documents) != sentences:
        first = min(len(documents), sentences) + 1
        short, long = (path, source) if len(documents) < sentences else (source, path)
        raise TextError(
            f"{path} has {len(documents)} document ids but {source} has {sentences} sentences: {short} ends before "
            f"line {first} of {long}; give one id for every sentence."
        )
    check_documents(documents, str(path))
    return documents


def _read_bytes(path: Path) -> bytes:
    with _as_text_error(path), gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
        return file.read()


@contextmanager
def _as_text_error(path: str | Path) -> Iterator[None]:
    """Convert errors of reading a file to TextError."""
    try:
        yield
    except FileNotFoundError:
        raise TextError(f"{path}: no such file; check the path.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TextError(f"{path}: not a whole gzip file ({error}); fetch or compress it again.") from error
    except IsADirectoryError:
        raise TextError(f"{path}: a folder, not a file; name the file in it.") from None
    except OSError as error:
        raise TextError(f"{path}: cannot be read ({error.strerror or error}); check its permissions.") from None


def _decode(where: str | Path, content: bytes) -> str:
    try:
        text = content.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        if content.startswith(_UTF16_MARKS):
            why = "it begins with the byte-order mark of UTF-16: convert the file to UTF-8"
        elif content.startswith(_GZIP_MARK):
            why = "it is a gzip archive: let its name end in .gz"
        else:
            why = f"byte {content[error.start]:#04x} at byte {{column}} of the line: convert the file to UTF-8"
        raise _byte_error(where, content, error.start, f"not UTF-8 ({why})") from None
    if (nul := content.find(b"\0")) >= 0:  # valid UTF-8, and what UTF-16 without its mark looks like
        why = "a NUL at byte {column} of the line, which text never contains: it is UTF-16 or not text"
        raise _byte_error(where, content, nul, f"{why}; convert the file to UTF-8")
    return text


def _byte_error(where: str | Path, content: bytes, position: int, why: str) -> TextError:
    """The error for a byte of the file; `{column}` in the reason is replaced by the byte's position in its line."""
    line = content.count(b"\n", 0, position) + 1
    column = position - (content.rfind(b"\n", 0, position) + 1) + 1
    return TextError(f"{where}:{line}: {why.format(column=column)}.")


def _stem(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).stem


def explain_mismatch(source: str | Path, sources: Sequence[str], target: str | Path, targets: Sequence[str]) -> str:
    """Explain where two files are misaligned: a false line end, a byte-order mark, or the first visible difference."""
    counts = f"{source} has {len(sources)} lines but {target} has {len(targets)}"
    (short, shorter), (long, longer) = sorted(((source, sources), (target, targets)), key=lambda side: len(side[1]))
    false_line_ends = [
        (number, character) for number, line in enumerate(shorter, 1) for character in _FALSE_LINE_END.findall(line)
    ]
    if false_line_ends:
        number, character = false_line_ends[0]
        # They are certainly the cause only if the counts add up.
        certainty = "" if len(false_line_ends) == len(longer) - len(shorter) else "probably "
        return (
            f"{counts}: they {certainty}part at line {number}, where {short} holds {_FALSE_LINE_ENDS[character]}, "
            f"which another tool took for a line end in {long} ({len(false_line_ends)} in all); replace it by a space "
            "and align again."
        )
    for number, line in enumerate(longer, 1):
        if line.strip(_BYTE_ORDER_MARK + " ") == "" and _BYTE_ORDER_MARK in line:
            return f"{counts}: they part at line {number}, where {long} holds nothing but a byte-order mark; remove it."
    for number, (short_line, long_line) in enumerate(zip(shorter, longer, strict=False), 1):
        if (short_line.strip() == "") != (long_line.strip() == ""):
            empty = short if short_line.strip() == "" else long
            return f"{counts}: they part at line {number}, which is empty in {empty} only; align them again."
    first = len(shorter) + 1
    return (
        f"{counts}: at line {first} {short} has ended and {long} goes on with {longer[first - 1][:60]!r}; no U+2028, "
        "NEL or byte-order mark explains it: cut the longer file or align again."
    )
