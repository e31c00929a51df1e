"""Opens pages of the app as a user would, and reads what they show."""

import base64
import json
from functools import cache
from pathlib import Path

import numpy as np
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from workbench.app.server import SCRIPT
from workbench.store.runs import Run, list_runs

# AppTest makes a runtime for every run of a page, each of which reads the metadata of all installed packages.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)

# Elements whose text Streamlit reads as Markdown, which must not meet the text of a corpus unescaped.
MARKDOWN = ("markdown", "caption", "title", "header", "subheader", "error", "warning", "info", "success", "toast")
WIDGETS = (
    "button",
    "selectbox",
    "multiselect",
    "text_input",
    "text_area",
    "number_input",
    "slider",
    "toggle",
    "tabs",
    "expander",
)


def open_page(name: str = "start", **query: str | list[str]) -> AppTest:
    """A page at a query string, at sentence 0 unless it names another one; fails where it raises."""
    at = AppTest.from_file(str(SCRIPT), default_timeout=60)
    if name != "start":
        switch(at, name)
    for key, value in {"sentence": "0", **query}.items():
        at.query_params[key] = value
    at.run()
    assert not at.exception, [error.message for error in at.exception]
    return at


def switch(at: AppTest, name: str) -> AppTest:
    """Another page, by its place in the URL: before its first run AppTest knows pages by the names of their files."""
    at._page_hash = calc_hash(name)
    return at


def runs_of(root: Path, *names: str) -> list[Run]:
    """Runs of the demo below a runs folder."""
    listed = {run.name: run for run in list_runs(root)}
    return [listed[f"demo/{name}"] for name in names]


def charts(at: AppTest) -> list[dict]:
    """The Plotly figures of a page, their arrays as NumPy arrays."""
    return [_arrays(json.loads(chart.proto.spec)) for chart in at.get("plotly_chart")]


def _arrays(value):
    if isinstance(value, dict) and set(value) >= {"dtype", "bdata"}:
        flat = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
        return flat.reshape([int(n) for n in str(value["shape"]).split(",")]) if "shape" in value else flat
    if isinstance(value, dict):
        return {key: _arrays(inner) for key, inner in value.items()}
    return [_arrays(inner) for inner in value] if isinstance(value, list) else value


def traces(chart: dict, name: str) -> list[dict]:
    """The traces of a series."""
    return [trace for trace in chart["data"] if trace.get("name") == name]


def heat_maps(chart: dict) -> list[np.ndarray]:
    """The cells of the heat maps of a figure, in their order."""
    return [np.array(trace["z"]) for trace in chart["data"] if trace["type"] == "heatmap"]


def axis_titles(chart: dict) -> set[str]:
    axes = [value for key, value in chart["layout"].items() if key.startswith(("xaxis", "yaxis"))]
    return {axis["title"]["text"] for axis in axes if axis.get("title", {}).get("text")}


def texts(at: AppTest) -> list[str]:
    """What stands on the page as plain text, the lines of a sentence's texts among it."""
    lines = [" ".join(line["words"]) or line["note"] for line in sentence_lines(at)["lines"]]
    return [*lines, *(element.value for element in at.text)]


def sentence_lines(at: AppTest) -> dict:
    """The texts of the sentence on the page with their shadings and selected words, as the browser is given them."""
    given = [json.loads(element.proto.json) for element in at.get("bidi_component")
             if element.proto.component_name == "nmt_workbench_sentence_texts"]  # fmt: skip
    return given[0] if given else {"lines": [], "shadings": [], "selected": {}}


def showing_piece_marks(at: AppTest) -> list[str]:
    """The kinds of elements that show the ▁ of SentencePiece's pieces, in a text, a table or on hover."""
    written = ("▁".encode(), rb"\u2581")  # as text, and in JSON
    shown = [(element.type, element.proto.SerializeToString()) for element in at.main if element.proto is not None]
    return [kind for kind, content in shown if any(mark in content for mark in written)]


def codes(at: AppTest) -> list[str]:
    return [element.value for element in at.code]


def read_as_markdown(at: AppTest) -> list[str]:
    """Every text of the page that Streamlit reads as Markdown: bodies of Markdown elements and labels of widgets."""
    bodies = [element.value for kind in MARKDOWN for element in getattr(at, kind)]
    return bodies + [element.label for kind in WIDGETS for element in getattr(at, kind)]
