"""Input of document context for a typed or chosen sentence, and the context that each run reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import streamlit as st

from workbench.app.frame import Frame, escape_markdown
from workbench.evaluation.document_context import (
    ContextSentences,
    before,
    context_aware_runs,
    context_window,
    typed_context,
)
from workbench.evaluation.live_trace import standing_before
from workbench.store.runs import Run

KEY = "before"


def field(frame: Frame, runs: Sequence[Run], typed_source: str) -> str:
    """A field for the sentences before the sentence, one per line; "" without a field if no run reads context."""
    context_runs = context_aware_runs(runs)
    if not context_runs:
        return ""
    lines: Sequence[str] = ()
    if frame.tested and not typed_source.strip():
        test_set = frame.tested[0].translations(frame.view.test).test_set
        reach = max(context_window(run)[0] for run in context_runs)
        lines = before(test_set, frame.view.sentence, reach).in_order
    return st.text_area(
        "Sentences before", placeholder="\n".join(lines), height=80, key=KEY, bind="query-params",
        help="One a line, the nearest last. Left empty: before a sentence that is chosen in the sidebar stand those of "
        "its document, before a typed one there is none.",
    ).strip()  # fmt: skip


def read_by(frame: Frame, run: Run, typed_source: str, typed: str) -> ContextSentences | None:
    """The context that a run reads; None if it reads none.

    This is the typed lines as far as the run reads back, else the context in the chosen sentence's document, with the
    run's own translations of the test set if it has some.
    """
    reach, after = context_window(run)
    if typed:
        return typed_context(typed, reach)
    if not reach:
        return None
    if typed_source.strip() or not frame.tested:
        return ContextSentences(())
    shown = frame.tested[0].translations(frame.view.test).test_set  # the test set of the sentence on the page
    if run in frame.tested:
        translations = run.translations(frame.view.test)
        if (translations.test_set.sources, translations.test_set.documents) == (shown.sources, shown.documents):
            return standing_before(run, translations, frame.view.sentence)
    return before(shown, frame.view.sentence, reach, after=after)


def around(read: Iterable[ContextSentences]) -> dict[int, str]:
    """The context sentences that any of several systems reads, by `ContextSentences.distance`, in document order."""
    texts = {
        context.distance(entry): text
        for context in read
        for entry, text in enumerate(context.sources)
        if text is not None
    }
    return dict(sorted(texts.items(), reverse=True))


def say(read: Mapping[str, ContextSentences | None]) -> None:
    """Show the context sentences that are read, and how many by which system; nothing if no system reads context."""
    contexts = {name: context for name, context in read.items() if context is not None}
    if not contexts:
        return
    lines = around(contexts.values())
    where = "around" if any(context.after for context in contexts.values()) else "before"
    if not lines:
        st.caption(f"No sentence stands {where} it.")
        return
    counts = "; ".join(f"{escape_markdown(name)} reads {context.count}" for name, context in contexts.items())
    single_readers = [escape_markdown(name) for name, context in read.items() if context is None]
    single = f"; {', '.join(single_readers)}: single sentences" if single_readers else ""
    st.caption(f"{where.capitalize()} it ({counts}{single}):")
    st.text("\n".join(lines.values()))
