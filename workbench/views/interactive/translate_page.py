"""Page Translate: live translation by a run with forced prefix, beam, length penalty; n-best, tokens, beam tree."""

import streamlit as st

from workbench.app import sidebar
from workbench.app.components import document_context_input, empty_states, figure_view
from workbench.app.frame import errors_as_messages, heading
from workbench.store.runs import short_names
from workbench.views.beam_search import controls as beam_controls
from workbench.views.beam_search import node_selection
from workbench.views.interactive import decoding
from workbench.views.interactive.tokens_table import token_table

Number = st.column_config.NumberColumn
N_BEST = {
    "score": Number("Score", format="%.3f", width=70),
    "log_prob": Number("log P (nats)", format="%.3f", width=100),
    "text": st.column_config.TextColumn("Translation", width="large"),
}
TOKENS = {
    "step": Number("Step", width=60),
    "token": "Token",
    "log_prob": Number("log P (nats)", format="%.3f", width=110),
    "probability": st.column_config.ProgressColumn("P", format="%.3f", min_value=0.0, max_value=1.0),
}

heading("Translate", "Translate a sentence with any run; a forced prefix asks what would follow it.")
frame = empty_states.require_runs(translated=False)

tested = frame.tested
line = tested[0].translations(frame.view.test).test_set.sources[frame.view.sentence] if tested else ""
names = short_names(frame.chosen)
wide, narrow = st.columns([3, 1])
typed = wide.text_area(
    "Source",
    placeholder=line,
    height=90,
    key="source",
    bind="query-params",
    help="Tokenized as in the training data. Left empty: the sentence chosen in the sidebar.",
)
name = narrow.selectbox(
    "Run", [run.name for run in frame.chosen], format_func=names.__getitem__, key="with", bind="query-params"
)
run = next(run for run in frame.chosen if run.name == name)
before = document_context_input.field(frame, frame.chosen, typed)
losses = decoding.has_test_losses(run)
columns = st.columns([4, 2, 2, 2, *([2] if losses else [])])
prefix = columns[0].text_input(
    "Forced prefix", key="prefix", bind="query-params", placeholder="what the translation must begin with"
)
beam = columns[1].number_input("Beam", 1, decoding.MOST_BEAMS, 5, key="beam", bind=sidebar.whole_number_bind("beam"))
penalty = columns[2].number_input("Length penalty", 0.0, 2.0, 0.6, 0.1, key="penalty", bind="query-params")
n_best = columns[3].number_input(
    "n-best", 1, decoding.MOST_BEAMS, 5, key="best", bind=sidebar.whole_number_bind("best")
)
test_loss = decoding.test_loss(columns[4]) if losses else None

source = (typed or line).strip()
if not source:
    empty_states.empty_state("Type a sentence above.")
    st.stop()
with errors_as_messages():
    context = decoding.completed(run, document_context_input.read_by(frame, run, typed, before))
    search = int(beam), float(penalty), int(n_best)
    request = decoding.TranslationRequest(source, prefix.strip(), *search, context, test_loss)
    translation = decoding.translate(run, request)
    with st.container(border=True):
        document_context_input.say({names[run.name]: context})
        st.text(source)
        st.text(translation.text or "(empty)")
    st.subheader("n-best")
    st.dataframe(
        [
            {"score": hypothesis.score, "log_prob": hypothesis.log_prob, "text": hypothesis.text}
            for hypothesis in (translation, *translation.n_best)
        ],
        key="n-best",
        hide_index=True,
        placeholder="–",
        column_config=N_BEST,
        alt="The best translations",
    )
    st.caption("Score: log P under the length penalty.")
    st.subheader("Tokens")
    st.dataframe(
        token_table(translation.tokens, translation.token_log_probs),
        key="tokens",
        hide_index=True,
        placeholder="–",
        column_config=TOKENS,
        height=250,
        alt="Log-probability of each token",
    )
    st.subheader("Beam tree")
    figure = decoding.tree(translation, **beam_controls.options(decoding.steps(translation)))
    points = figure_view.show_figure(figure, decoding.command(run, request), key="live", selectable=True)
    url_source = {"source": source} if source != line else {}
    node_selection.from_node(
        figure, points, "live", **url_source, **({document_context_input.KEY: before} if before else {})
    )
