"""Laws of reading parallel text: only a line feed ends a line, and what does not fit is named with file and line."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_models.text.parallel import ParallelText, TextError, read_lines, read_parallel, read_tsv, write_lines


def _write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


LINES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0")).filter(lambda s: not s.endswith("\r")),
    min_size=1,
).filter(lambda lines: not lines[0].startswith("\ufeff"))


@pytest.mark.parametrize("name", ["text.en", "text.en.gz"])
@settings(deadline=None)  # a disk may be slow
@given(lines=LINES)
def test_what_is_written_is_read_back(tmp_path_factory, name, lines):
    path = tmp_path_factory.mktemp("lines") / name
    write_lines(path, lines)
    assert read_lines(path) == lines
    assert [file.name for file in path.parent.iterdir()] == [name]


def test_only_line_feeds_end_lines(tmp_path):
    kept = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\rh"
    path = _write(tmp_path / "text.en", f"\ufeff{kept}\r\n\nlast")
    assert read_lines(path) == [kept, "", "last"]


def test_the_same_lines_make_the_same_archive(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_lines(tmp_path / name, ["one", "two"])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"one\ntwo\n"


def test_a_failed_write_leaves_the_old_file(tmp_path):
    write_lines(tmp_path / "text", ["old"])
    for unwritable, why in (("two\nlines", "a line end"), ("a\0b", "a NUL"), ("a\ud800", "half a surrogate pair")):
        with pytest.raises(TextError, match=f"text:2: .*{why}"):
            write_lines(tmp_path / "text", ["new", unwritable])
    with pytest.raises(TextError, match=r"text:1: .* a byte-order mark, which readers drop"):
        write_lines(tmp_path / "text", ["\ufeffnew"])
    assert read_lines(tmp_path / "text") == ["old"]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"good\nna\xefve\n", r"text.en:2: not UTF-8 \(byte 0xef at byte 3 "),
        ("ab".encode("utf-16"), "byte-order mark of UTF-16"),
        ("a\nb\n".encode("utf-16-le"), r"text\.en:1: a NUL at byte 2 of the line.*it is UTF-16 or not text; convert"),
        (b"good\nab\0\n", r"text\.en:2: a NUL at byte 3 of the line"),
        (gzip.compress(b"a\n", mtime=0), r"a gzip archive: let its name end in \.gz"),
        (b"one\rtwo\rthree\r", r"its lines end in bare carriage returns"),
    ],
)
def test_unreadable_files_are_named(tmp_path, content, message):
    (tmp_path / "text.en").write_bytes(content)
    with pytest.raises(TextError, match=message):
        read_lines(tmp_path / "text.en")


def test_a_cut_archive_is_named(tmp_path):
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"one\ntwo\n" * 100)[:-9])
    with pytest.raises(TextError, match=r"text\.gz: not a whole gzip file"):
        read_lines(tmp_path / "text.gz")
    whole = gzip.compress(b"one\ntwo\n" * 100)
    (tmp_path / "text.gz").write_bytes(whole[:12] + bytes([whole[12] ^ 0xFF]) + whole[13:])
    with pytest.raises(TextError, match=r"text\.gz: not a whole gzip file"):
        read_lines(tmp_path / "text.gz")
    with pytest.raises(TextError, match="no such file"):
        read_lines(tmp_path / "absent")
    with pytest.raises(TextError, match="a folder, not a file; name the file in it"):
        read_lines(tmp_path)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            "a\nb\u2028c\nd\n",
            "A\nB\nC\nD\n",
            r"3 lines but .* has 4: they part at line 2, where \S*x\.en holds U\+2028",
        ),
        ("A\nB\nC\nD\n", "a\nb\u0085c\nd\n", r"they part at line 2, where \S*x\.de holds U\+0085 \(NEL\)"),
        ("a\u2028b\nc\n", "A\nB\nC\nD\n", "they probably part at line 1"),
        ("a\n\ufeff\nb\n", "A\nB\n", r"they part at line 2, where \S*x\.en holds nothing but a byte-order mark"),
        ("a\n\nb\nc\n", "A\nB\nC\n", r"they part at line 2, which is empty in \S*x\.en only"),
        ("a\nb\n", "A\nB\nCesar\n", r"at line 3 \S*x\.en has ended and \S*x\.de goes on with 'Cesar'"),
    ],
)
def test_files_that_part_are_explained(tmp_path, source, target, message):
    with pytest.raises(TextError, match=message):
        read_parallel(_write(tmp_path / "x.en", source), _write(tmp_path / "x.de", target))


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_documents_lie_beside_the_source(tmp_path, ending):
    write_lines(tmp_path / "train.en.gz", ["a", "b", "c"])
    write_lines(tmp_path / f"train.docids{ending}", ["x", "x", "y"])
    assert read_parallel(tmp_path / "train.en.gz") == ParallelText("train", ["a", "b", "c"], None, ["x", "x", "y"])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("x\ny\nx\n", r"train\.docids:3: document 'x' begins again \(its first run began at line 1\)"),
        ("x\n\ny\n", r"train\.docids:2: no document id"),
        ("x\nx\n", r"2 document ids but .* 3 sentences: .*docids ends before line 3"),
    ],
)
def test_documents_that_do_not_fit_are_named(tmp_path, ids, message):
    source = _write(tmp_path / "train.en", "a\nb\nc\n")
    _write(tmp_path / "train.docids", ids)
    with pytest.raises(TextError, match=message):
        read_parallel(source)


def test_tab_separated_text(tmp_path):
    path = _write(tmp_path / "x.tsv", "d1\ta\tA\nd2\tb\tB\n")
    assert read_tsv(path, (1, 2)) == ParallelText("x", ["a", "b"], ["A", "B"])
    assert read_tsv(path, (1, 2, 0)).documents == ["d1", "d2"]
    with pytest.raises(TextError, match=r"x\.tsv:1: 3 columns, but column 3 .*one tab between"):
        read_tsv(path, (0, 3))
