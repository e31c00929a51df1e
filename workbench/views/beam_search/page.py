"""Beam trees: what the baseline's search and another's kept, pruned and finished, and where they part."""

import shlex

import streamlit as st

from workbench.app.components import empty_states, figure_view, page_sections, sentence_texts, stepper
from workbench.app.frame import errors_as_messages, heading
from workbench.evaluation.sentence_rankings import most_different
from workbench.figures.spec import figure_command, recipe_of
from workbench.store.runs import short_names
from workbench.views.beam_search import controls, node_selection
from workbench.views.beam_search.measure import has_trees, longest_search

VIEWS = {"both": "Both systems", "difference": "Difference", "one": "One system"}

heading("Beam trees", "The hypotheses that each search considered, from left to right; the best one lies straight.")
frame = empty_states.require_runs()
test = frame.view.test
if not any(has_trees(run, test) for run in frame.tested):
    empty_states.empty_state_of_runs(
        "No beam tree of this test set was recorded. Record them:",
        frame.tested,
        f"workbench translate {{}} --test {shlex.quote(test)} --save-beams",
    )
    has_recorded = "recorded a beam tree of this test set"
    frame = page_sections.any_compatible(frame, has_recorded, lambda run: has_trees(run, test))
compatible_runs = [run for run in frame.tested if has_trees(run, test)]
if not compatible_runs:
    st.stop()
sentence_texts.show(frame)
names = short_names(frame.tested)
views = [view for view in VIEWS if view == "one" or len(compatible_runs) > 1]
columns = st.columns([3, 2, 2])
view = columns[0].segmented_control(
    "Show", views, format_func=VIEWS.__getitem__, default=views[0], required=True, key="show", bind="query-params"
)
first = columns[1].selectbox(
    "System", [run.name for run in compatible_runs], format_func=names.__getitem__, key="system", bind="query-params"
)
others = [run for run in compatible_runs if run.name != first]
other_names = [run.name for run in others]
# A search that knows future cost is what the plots are for; else the next run.
beside = next((place for place, run in enumerate(others) if "future_cost" in run.mechanisms), 0)
second = (
    columns[2].selectbox(
        "Beside", other_names, beside, format_func=names.__getitem__, key="beside", bind="query-params"
    )
    if view != "one"
    else None
)
pair = [next(run for run in compatible_runs if run.name == name) for name in (first, second) if name]

recorded = min(run.translations(test).trees for run in pair)
if frame.view.sentence >= recorded > 0:
    empty_states.empty_state_of_runs(
        f"Beam trees were recorded of sentences 0 to {recorded - 1}. Go to one of them, or record all:",
        pair,
        f"workbench translate {{}} --test {shlex.quote(test)} --save-beams",
    )
    nearest = most_different(pair, test, lambda row, words: row < recorded)
    st.button(
        f"Sentence {nearest}, where their outputs differ most" if len(pair) > 1 else f"Sentence {nearest}",
        type="primary", on_click=stepper.set_number, args=("sentence", nearest),
    )  # fmt: skip
    st.stop()

with errors_as_messages():
    longest = longest_search(frame.request(pair))
    options = controls.options(longest)
    request = frame.request(pair, **options)
    name = {"both": "beam-trees", "difference": "beam-diff", "one": "beam-tree"}[view]
    if st.toggle("Play the search", False, key="play", bind="query-params"):
        first_step, last_step = options.get("steps", (1, longest))
        figure_view.show_growing(name, request, range(first_step, last_step + 1))
    else:
        figure, command = figure_view.drawn(name, request), figure_command(name, request)
        points = figure_view.show_figure(figure, command, recipe=recipe_of(name, request), selectable=True)
        node_selection.from_node(figure, points, name)
    if view == "difference":
        controls.only_lists(request, names)
