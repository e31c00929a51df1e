"""Sections of the page Context: one sentence, ablation of its context, the test set, pronouns.

Sections arrange controls and figures; the figures compute.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import streamlit as st

from analyses.documents import how_far
from workbench.app.components import (
    document_context_input,
    empty_states,
    figure_view,
    forced_decoding_controls,
    page_sections,
    sentence_texts,
)
from workbench.app.components.color_scale import color_scale_maximum
from workbench.app.components.stepper import set_number
from workbench.app.frame import Frame, errors_as_messages, escape_markdown
from workbench.evaluation.document_context import (
    CAPSULES,
    ContextSentences,
    attending,
    context_mechanisms,
    next_with_context,
)
from workbench.evaluation.live_trace import SentenceTrace
from workbench.evaluation.sentence_rankings import PRONOUN_RANKING, next_in_ranking
from workbench.figures.options import choices, default
from workbench.figures.request import Request
from workbench.store.runs import Run, RunError, short_names
from workbench.views.contrastive import measure as contrastive
from workbench.views.document_context.attention_figures import ContextAttentionOptions, sides
from workbench.views.document_context.figures import CORRELATIONS, SHOWN, ContextRoutingOptions, array

FIGURES = {
    "own": "As chosen below",
    "6": "Figure 6: c of all iterations",
    "7": "Figure 7: p of all iterations",
}
PRESETS: dict[str, dict[str, object]] = {"6": {"show": "c"}, "7": {"show": "p"}}
OVER = {"words": "Words", "sentences": "Sentences"}


def sentence(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """Texts of the context, maps of capsules by iteration, and attention to the context."""
    sentence_texts.show(frame)
    with errors_as_messages():
        translation = forced_decoding_controls.target()
        traces = forced_decoding_controls.looked_into(frame, compatible_runs, translation)
        show_context(frame, traces)
        if not any(trace.before is not None and trace.before.count for trace in traces):
            return
        routed = [trace for trace in traces if CAPSULES in context_mechanisms(trace.run)]
        if routed:
            _capsules(frame, routed, translation)
        attended = [trace.run for trace in traces if attending(trace.run)]
        if attended:
            _attention(frame, attended, translation)
        joined = [trace.run for trace in traces if "concatenation" in context_mechanisms(trace.run)]
        if joined:
            names = ", ".join(short_names(frame.tested)[run.name] for run in joined)
            st.text(
                f"{names}: the sentences before are part of the source; the page Attention shows who looks at them."
            )


def show_context(frame: Frame, traces: Sequence[SentenceTrace]) -> None:
    """Context sentences that some run reads, with the translations that runs read for them."""
    names = short_names(frame.tested)
    read = {names[trace.run.name]: trace.before for trace in traces if trace.before is not None}
    lines = document_context_input.around(read.values())
    if not lines:
        st.text("This sentence begins its document, or no document is known: there is no context.")
        _offer_context(frame, traces[0].run)
        return
    with st.container(border=True):
        for distance, text in lines.items():
            _line(how_far(distance), text)
            for translation, readers in _translations(read, distance).items():
                _line(f"translation read by {', '.join(readers)}", translation)
    reach = ", ".join(
        f"{name} reads {_reach_text(read.get(name))}" for name in (names[trace.run.name] for trace in traces)
    )
    st.caption(escape_markdown(f"Sentences before: {reach}."))


def _offer_context(frame: Frame, run: Run) -> None:
    """A button that leads to a sentence with context, one with a pronoun that needs it if such are known."""
    test, sentence = frame.view.test, frame.view.sentence
    number = next_with_context(run, run.translations(test).test_set, sentence)
    if number is None:
        return
    label = f"Go to sentence {number}, which has context"
    with suppress(RunError):  # no truth, or no pronoun
        number = next_in_ranking(PRONOUN_RANKING, [run], test, sentence)
        label = f"Go to sentence {number}, which has context and a pronoun that needs it"
    st.button(label, on_click=set_number, args=("sentence", number), key="to-context")


def _translations(read: Mapping[str, ContextSentences], distance: int) -> dict[str, list[str]]:
    """Translations that runs read for the context sentence at a distance, each with the names of its runs."""
    by_text: dict[str, list[str]] = {}
    for name, before in read.items():
        for entry, text in enumerate(before.outputs or ()):
            if text is not None and before.distance(entry) == distance:
                by_text.setdefault(text, []).append(name)
    return by_text


def _reach_text(before: ContextSentences | None) -> str:
    """Number of sentences that a run reads before the current one and, if any, after it."""
    if before is None:
        return "0"
    after = f" and {before.after} after" if before.after else ""
    return f"{len(before.sources) - before.after}{after}"


def _line(label: str, text: str) -> None:
    side, wide = st.columns([1, 6], gap="small")
    side.caption(escape_markdown(label))
    wide.text(text or "(empty)")


def _capsules(frame: Frame, traces: Sequence[SentenceTrace], translation: dict[str, object]) -> None:
    st.subheader("Capsules")
    columns = st.columns([3, 3, 3, 2], vertical_alignment="bottom")
    preset = columns[0].selectbox(
        "Yang 2019", list(FIGURES), format_func=FIGURES.__getitem__, key="figure", bind="query-params"
    )
    show = columns[1].segmented_control(
        "Maps", choices(ContextRoutingOptions, "show"), format_func=SHOWN.__getitem__,
        default=default(ContextRoutingOptions, "show"), required=True, key="maps", bind="query-params",
        disabled=preset != "own",
    )  # fmt: skip
    correlation = columns[2].segmented_control(
        "Correlation", choices(ContextRoutingOptions, "correlation"), format_func=CORRELATIONS.__getitem__,
        default=default(ContextRoutingOptions, "correlation"), required=True, key="correlation", bind="query-params",
        help="Equation 7 as published divides by lengths before the means are taken off: it is no correlation",
    )  # fmt: skip
    raw = columns[3].toggle("Without tanh", False, key="raw", bind="query-params")
    options = {"show": show, "correlation": correlation, "raw": raw, **PRESETS.get(preset, {})}
    runs = [trace.run for trace in traces]
    count = min(len(array(trace, "couplings")) for trace in traces)
    _routing_with_slider(frame.request(runs, **translation), options, count, preset == "own")
    figure_view.show("context-curves", frame.request(runs, **translation))
    figure_view.show("context-capsules-read", frame.request(runs, **translation))


def change(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """Change of the translation's probability when words or sentences of the context are left out."""
    sentence_texts.show(frame)
    with errors_as_messages():
        translation = forced_decoding_controls.target()
        traces = forced_decoding_controls.looked_into(frame, compatible_runs, translation)
        show_context(frame, traces)
        with_context = [trace.run for trace in traces if trace.before is not None and trace.before.count]
        if with_context:
            figure_view.show("context-changes", frame.request(with_context, **translation))


def corpus(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """Routing of the context over the test set."""
    frame, routed = page_sections.compatible(frame, "routes its context to capsules", _routes_context, "qcn-reg")
    options = forced_decoding_controls.sentence_count(st, "context-sentences")
    figure_view.show("context-corpus", frame.request(routed, **options))
    figure_view.show("context-distances", frame.request(routed, **options))


def _routes_context(run: Run) -> bool:
    return CAPSULES in context_mechanisms(run)


def pronouns(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """Pronouns by the distance of their antecedent: choices in translations, and contrastive scores."""
    test = frame.view.test
    if any(run.translations(test).truth is None for run in frame.tested):
        empty_states.empty_state(
            f"The test set {test!r} does not say which pronoun is right; the controlled corpus does. Write one, "
            "prepare it and train on it:",
            "workbench data controlled --out DIR",
        )
        return
    st.subheader("As they were written")
    figure_view.show("true-choices", frame.request())
    st.subheader("Contrastive evaluation")
    name = f"controlled-{test}"
    models = [run for run in frame.tested if not run.outside]
    scored = [run for run in models if name in contrastive.scored_names(run)]
    if scored:
        figure_view.show("contrastive", frame.request(scored, name=name, tag="distance"))
    waiting = [run for run in models if run not in scored]
    if waiting:
        message = f"Not scored yet: {', '.join(run.name for run in waiting)}. Score the pronouns of its test set:"
        command = f"workbench contrastive-eval --controlled {shlex.quote(test)} --run {{}}"
        empty_states.empty_state_of_runs(message, waiting, command)


@st.fragment
def _routing_with_slider(request: Request, options: dict[str, object], count: int, free: bool) -> None:
    """Routing maps of one iteration, chosen by a slider, or of all."""
    steps = [*map(str, range(count)), "all"]
    iteration = forced_decoding_controls.slider(st, "Iteration", "iteration", steps, str(count - 1)) if free else "all"
    figure_view.show(
        "context-routing",
        replace(request, options={**request.options, **options, "iteration": iteration}),
    )


def _attention(frame: Frame, runs: Sequence[Run], translation: dict[str, object]) -> None:
    st.subheader("Attention to the context")
    columns = st.columns(3, vertical_alignment="bottom")
    available = sides(list(runs))
    side = columns[0].segmented_control(
        "From", available, format_func=str.capitalize, default=available[0], required=True, key="context-side",
        bind="query-params",
    )  # fmt: skip
    over = columns[1].segmented_control(
        "To", choices(ContextAttentionOptions, "over"), format_func=OVER.__getitem__,
        default=default(ContextAttentionOptions, "over"), required=True, key="context-over", bind="query-params",
    )  # fmt: skip
    limit = color_scale_maximum(columns[2])
    figure_view.show("context-attention", frame.request(runs, **translation, side=side, over=over, limit=limit))
