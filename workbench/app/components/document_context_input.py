"""What stands before a sentence that somebody types or chooses: a field for it, and what each run reads of it."""

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


def field(here: Frame, runs: Sequence[Run], typed_source: str) -> str:
    """What is typed to stand before the sentence, a sentence a line; no field where no run reads it."""
    able = context_aware_runs(runs)
    if not able:
        return ""
    lines: Sequence[str] = ()
    if here.tested and not typed_source.strip():
        test = here.tested[0].translations(here.view.test).test_set
        reach = max(context_window(run)[0] for run in able)
        lines = before(test, here.view.sentence, reach).in_order
    return st.text_area(
        "Sentences before", placeholder="\n".join(lines), height=80, key=KEY, bind="query-params",
        help="One a line, the nearest last. Left empty: before a sentence that is chosen in the sidebar stand those of "
        "its document, before a typed one there is none.",
    ).strip()  # fmt: skip


def read_by(here: Frame, run: Run, typed_source: str, typed: str) -> ContextSentences | None:
    """What a run reads beside the sentence: the typed lines as far as it reaches back, else those of the chosen
    sentence's document with its own translations of the test set, if it has some; None where it reads nothing."""
    reach, after = context_window(run)
    if typed:
        return typed_context(typed, reach)
    if not reach:
        return None
    if typed_source.strip() or not here.tested:
        return ContextSentences(())
    shown = here.tested[0].translations(here.view.test).test_set  # whose sentence the page translates
    if run in here.tested:
        own = run.translations(here.view.test)
        if (own.test_set.sources, own.test_set.documents) == (shown.sources, shown.documents):
            return standing_before(run, own, here.view.sentence)
    return before(shown, here.view.sentence, reach, after=after)


def around(read: Iterable[ContextSentences]) -> dict[int, str]:
    """The sentences that any of several systems reads around the same one, by `Before.distance`, as they stand in the
    document."""
    found = {one.distance(entry): text for one in read for entry, text in enumerate(one.sources) if text is not None}
    return dict(sorted(found.items(), reverse=True))


def say(read: Mapping[str, ContextSentences | None]) -> None:
    """Say which sentences are read around the shown one, by system; nothing where no system could read any."""
    known = {name: one for name, one in read.items() if one is not None}
    if not known:
        return
    lines = around(known.values())
    where = "around" if any(one.after for one in known.values()) else "before"
    if not lines:
        st.caption(f"No sentence stands {where} it.")
        return
    counts = "; ".join(f"{escape_markdown(name)} reads {one.there}" for name, one in known.items())
    alone = [escape_markdown(name) for name, one in read.items() if one is None]
    single = f"; {', '.join(alone)}: single sentences" if alone else ""
    st.caption(f"{where.capitalize()} it ({counts}{single}):")
    st.text("\n".join(lines.values()))
