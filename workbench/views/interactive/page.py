"""Page Translate: live translations by every chosen run, from a forced prefix if there is one, and their searches."""

import streamlit as st

from workbench.app import sidebar
from workbench.app.components import document_context_input, empty_states, page_sections
from workbench.app.frame import errors_as_messages, heading
from workbench.app.url_state import PREFIX
from workbench.evaluation import adequacy
from workbench.evaluation.document_context import context_aware_runs
from workbench.store.runs import short_names
from workbench.views.interactive import decoding, prefix_constrained, sections

COVERED = {"attention": "Attention", "aligner": "Frozen aligner"}
COVERAGE_TEXTS = {
    "attention": "Coverage: the share of source words to which some word of the output attends most (mean over layers "
    "and heads), by each system's own attention.",
    "aligner": "Coverage: the share of source words that one frozen aligner ({}) links to a word of the output.",
}
PARTS = {"tree": "Beam tree", "tokens": "n-best and tokens", "next": "Next subword"}
SECTIONS = {"tree": sections.tree, "tokens": sections.tokens, "next": sections.alternatives}

heading(
    "Translate",
    "Translate a sentence with every chosen run. To ask what would follow a prefix, type it, or click a subword or a "
    "node of a tree.",
)


def _take(sentence: str) -> None:
    st.session_state["source"] = sentence


frame = empty_states.require_runs(translated=False)
frame = page_sections.any_compatible(frame, "is trained", lambda run: bool(sections.trained_runs([run])))
runs = sections.trained_runs(frame.chosen)
if not runs:
    message = "None of the runs here is trained; train one:"
    empty_states.empty_state_of_runs(message, frame.chosen, "workbench resume {}")
    st.stop()
names = short_names(frame.chosen)
tested = frame.tested
line = tested[0].translations(frame.view.test).test_set.sources[frame.view.sentence] if tested else ""

typed = st.text_area(
    "Source", placeholder=line, height=80, key="source", bind="query-params",
    help="Tokenized as in the training data. Left empty: the sentence chosen in the sidebar.",
)  # fmt: skip
if line and not typed:
    st.button("Edit this sentence", icon=":material/edit:", on_click=_take, args=(line,), key="take")
before = document_context_input.field(frame, runs, typed)
losses = any(map(decoding.has_test_losses, runs))
columns = st.columns([4, 2, 2, 2, *([2] if losses else [])])
prefix = (
    columns[0]
    .text_input("Forced prefix", key=PREFIX, bind="query-params", placeholder="what every translation must begin with")
    .strip()
)
beam = columns[1].number_input("Beam", 1, decoding.MOST_BEAMS, 5, key="beam", bind=sidebar.whole_number_bind("beam"))
penalty = columns[2].number_input("Length penalty", 0.0, 2.0, 0.6, 0.1, key="penalty", bind="query-params")
n_best = columns[3].number_input(
    "n-best", 1, decoding.MOST_BEAMS, 5, key="best", bind=sidebar.whole_number_bind("best")
)
test_loss = decoding.test_loss(columns[4]) if losses else None
source = " ".join((typed or line).split())
if not source:
    empty_states.empty_state("Type a sentence above.")
    st.stop()
st.text(source)
if "\n" in typed.strip():
    st.caption("The lines are read as one sentence.")

short_enough = False
with errors_as_messages():
    decoding.check_length(runs[0], [source, prefix])
    short_enough = True
if not short_enough:  # said once, not for each run
    st.stop()

continued = []
compatible_runs = context_aware_runs(runs)
for run in runs:
    with errors_as_messages():
        context = (
            decoding.completed(run, document_context_input.read_by(frame, run, typed, before))
            if run in compatible_runs
            else None
        )
        search = int(beam), float(penalty), int(n_best), context, test_loss if decoding.has_test_losses(run) else None
        continued.append(sections.translated(run, decoding.TranslationRequest(source, prefix, *search)))
if not continued:
    st.stop()
document_context_input.say({names[item.run.name]: item.request.before for item in continued})
sections.outputs(continued, names)
coverage_source = st.segmented_control(
    "Coverage from", list(COVERED), format_func=COVERED.__getitem__, default="attention", required=True,
    key="coverage", bind="query-params",
)  # fmt: skip
with errors_as_messages():
    aligner, origin = adequacy.aligner_of(runs, frame.view.test) if coverage_source == "aligner" else (None, "")
    sections.results(prefix_constrained.table(continued, names, aligner))
    st.caption(COVERAGE_TEXTS[coverage_source].format(f"{aligner.digest}, {origin}" if aligner else ""))
page_sections.left_out(frame, runs, "weights")

st.subheader("Another prefix")
sections.pieces(continued, names)

st.subheader("Search of one run")
left, right = st.columns([5, 2], vertical_alignment="bottom")
part = page_sections.choose(left, PARTS, "inside")
name = right.selectbox(
    "Run", [item.run.name for item in continued], format_func=names.__getitem__, key="with", bind="query-params"
)
with errors_as_messages():
    SECTIONS[part](next(item for item in continued if item.run.name == name))
