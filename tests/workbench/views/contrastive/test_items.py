"""Items of contrastive test sets: files are read as they say, and what is none is refused with its place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyses.contrastive import Item
from tests.bad_input.test_fuzzing import FILES, bounded, sentences
from workbench.store.runs import RunError
from workbench.views.contrastive.items import read_items

pytestmark = pytest.mark.long

ITEMS = [
    Item("the dog sleeps .", "der Hund schläft .", ("die Hund schläft .", "das Hund schläft ."), {"distance": "0"}),
    Item("it sleeps .", "er schläft .", ("sie schläft .",), {"distance": "1"}, ("it was .",), (), ("it eats .",)),
]
TABLE = (
    "source\tright\twrong\twrong2\tdistance\tcontext\tcontext_after\n"
    "the dog sleeps .\tder Hund schläft .\tdie Hund schläft .\tdas Hund schläft .\t0\t\t\n"
    "it sleeps .\ter schläft .\tsie schläft .\t\t1\tit was .\tit eats .\n"
)
LINES = [
    {"source": "the dog sleeps .", "right": "der Hund schläft .", "wrong": list(ITEMS[0].wrong), "distance": 0},
    {"source": "it sleeps .", "right": "er schläft .", "wrong": "sie schläft .", "tags": {"distance": 1},
     "context": ["it was ."], "context_after": ["it eats ."]},
]  # fmt: skip
CONTRAPRO = [
    {
        "src segment": "It is old .",
        "ref segment": "Er ist alt .",
        "src pronoun": "it",
        "ref pronoun": "er",
        "ante distance": 1,
        "intrasegmental": False,
        "errors": [
            {"contrastive": "Sie ist alt .", "replacement": "sie", "type": "pronominal coreference"},
            {"contrastive": "Es ist alt .", "replacement": "es", "type": "pronominal coreference"},
        ],
    }
]


def test_the_three_forms_of_a_file(tmp_path):
    (tmp_path / "a.tsv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(line) for line in LINES) + "\n", encoding="utf-8")
    (tmp_path / "a.json").write_text(json.dumps(CONTRAPRO, indent=1), encoding="utf-8")
    assert read_items(tmp_path / "a.tsv") == ITEMS
    assert read_items(tmp_path / "a.jsonl") == ITEMS
    (item,) = read_items(tmp_path / "a.json")
    assert (item.source, item.right) == ("It is old .", "Er ist alt .")
    assert item.wrong == ("Sie ist alt .", "Es ist alt .")
    assert item.tags == {
        "distance": "1", "pronoun": "er", "source pronoun": "it", "intrasegmental": "False",
        "type": "pronominal coreference",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source\tright\nx\ty\n", "a:1: the header has no column 'wrong'"),
        ("source\tright\twrong\nx\ty\n", "a:2: 2 fields, but the header has 3"),
        ("source\tright\twrong\nx\ty\t\n", "a:2: an item needs the texts source and right and at least one wrong"),
        ('{"source": "x"', "a:1: not JSON"),
        ('{"source": "x", "right": 3, "wrong": "z"}', "a:1: an item needs the texts"),
        ('{"source": "x", "right": "y", "wrong": "z", "tags": 3}', "a:1: tags are names with values"),
        ('[{"src segment": "x", "errors": []}]', "item 0: an item needs the texts"),
        ("[1]", "item 0: a int, not an item"),
        ("[", "a: not JSON"),
    ],
)
def test_what_is_no_item_is_refused_with_its_place(tmp_path, text, message):
    (tmp_path / "a").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=message.replace("(", r"\(")):
        read_items(tmp_path / "a")


FIELDS = [b"source", b"right", b"wrong", b"tags", b"src segment", b"ref segment", b"errors", b"contrastive"]
FRAGMENTS = st.sampled_from([*(b'"%s": ' % name for name in FIELDS), *FIELDS, b'"x"', b"[", b"]", b"{", b"}", b","])


@bounded(150)
@given(head=st.sampled_from([b"", b"source\tright\twrong\n", b"[", b"{"]), body=st.one_of(FILES, st.lists(FRAGMENTS)))
def test_a_reader_given_anything_finds_items_or_says_why_not(tmp_path, head, body):
    (tmp_path / "f").write_bytes(head + (body if isinstance(body, bytes) else b"".join(body)))
    with sentences():
        for item in read_items(tmp_path / "f"):
            assert item.source
            assert item.right
            assert all(item.wrong)
