"""Page Words: F-measure by word frequency, and the n-grams that one system has and another lacks, with examples."""

import streamlit as st

from workbench.app.components import empty_states, figure_view, sentence_texts
from workbench.app.frame import errors_as_messages, heading
from workbench.evaluation import word_frequencies
from workbench.figures.options import default
from workbench.store.runs import short_names
from workbench.views.words import ngram_table
from workbench.views.words.figures import NgramOptions

TOKENIZERS = ("13a", "intl", "zh", "char", "none")

heading("Words", "Which words each system gets right, and which n-grams one has and the other lacks.")
frame = empty_states.require_runs()

columns = st.columns([3, 2, 2], vertical_alignment="bottom")
counts = columns[0].selectbox(
    "Frequencies counted in",
    list(word_frequencies.COUNTED),
    format_func=word_frequencies.COUNTED.__getitem__,
    key="counts",
    bind="query-params",
)
tokenize = columns[1].selectbox("Tokenizer", TOKENIZERS, key="tokenize", bind="query-params", help="sacreBLEU's")
lowercase = columns[2].toggle("Ignore case", key="lowercase", bind="query-params")
options = {"tokenize": tokenize, "lowercase": lowercase}

figure_view.show("word-f-measure", frame.request(counts=counts, **options))

st.header("N-grams")
if len(frame.tested) < 2:
    empty_states.empty_state(
        "N-grams are compared between two runs that have translated this test set: choose a second one."
    )
    st.stop()
names = short_names(frame.tested)
left, right = st.columns([3, 4])
beside = left.selectbox("Beside the baseline", [names[run.name] for run in frame.tested[1:]], key="beside-words")
orders = right.pills(
    "Words",
    [1, 2, 3, 4],
    selection_mode="multi",
    default=list(default(NgramOptions, "orders")),
    key="orders",
    persist_state="session",
)
if not orders:
    empty_states.empty_state("Choose how many words above.")
    st.stop()
ngram_options = NgramOptions(**options, beside=beside, orders=tuple(sorted(orders)))
request = frame.request(**ngram_options.model_dump())
figure_view.show("ngram-differences", request)
with errors_as_messages():
    ngram_table.show(request, ngram_options)
    sentence_texts.show(frame)
