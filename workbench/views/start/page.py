"""Page Start: loaded runs, the demo with a button that builds it, and the health of this machine."""

import shlex
from collections.abc import Collection

import streamlit as st

from workbench.app import health, plugins
from workbench.app.components import empty_states, job_view
from workbench.app.frame import current, errors_as_messages, escape_markdown, heading, page_file
from workbench.experiments import demo


def add_to_demo(system: str, existing: Collection[str]) -> None:
    """Button that trains one more demo system, unless it exists."""
    first = demo.first_pass(system)
    demo.by_recipe(system)  # raises for an unknown system
    if (name := f"demo/{demo.run_name(system)}") in existing:
        st.text(f"{name} is there already.")
        return
    if first is not None:
        st.text(
            f"PAST and FUTURE layers hardly train from scratch: {system} begins from the demo's {first}, which "
            "is trained before if need be, and so sees twice its updates."
        )
    add = ("demo", system, "--runs", str(frame.root))
    job_view.offer(frame.root, add, "Train, translate and trace it", f"Demo: {system}")
    st.code(shlex.join(["workbench", *add]), language="bash")


frame = current()
heading(
    "NMT workbench",
    "Look inside neural machine translation: compare systems, follow a sentence through the search, export figures.",
)

broken = [run for run in frame.runs if run.problem]
if frame.known:
    columns = st.columns(4)
    tests = {test: count for known in frame.known for test, count in known.tests.items()}
    for column, (label, value) in zip(
        columns,
        (
            ("Runs", len(frame.known)),
            ("Broken runs", len(broken)),
            ("Chosen", len(frame.chosen)),
            ("Test sets", len(tests)),
        ),
        strict=True,
    ):
        column.metric(label, value)
    with st.container(horizontal=True):
        for name, label in (
            ("scores", "Compare the scores"),
            ("lengths", "Scores by length"),
            ("beam_trees", "Look at a beam search"),
        ):
            st.page_link(page_file(name), label=label, icon=":material/arrow_forward:")
else:
    empty_states.empty_state(
        f"There is no run below {frame.root} yet. Build the demo, or train a system of your own:",
        f"workbench train transformer --data DATA --out {shlex.quote(str(frame.root))}/NAME",
    )

st.subheader("Demo")
systems = ", ".join(demo.systems())
st.text(
    f"{systems}, trained on the controlled corpus (sentences whose true translation is known), translated with "
    "their beams recorded, and traced. It takes some minutes on a laptop; what is done already is not done again."
)
if demo.complete(frame.root):
    st.text("The demo is built.")
    more = st.expander("Add system to demo", key="more", on_change="rerun")
    if more.open:
        from core_models.system_catalogue import catalogue  # takes PyTorch

        with more, errors_as_messages():
            existing = {run.name for run in frame.runs if "test" in run.tests()}
            absent = [name for name in catalogue() if f"demo/{name}" not in existing]
            left, right = st.columns(2)
            listed = left.selectbox(
                "System",
                absent,
                key="another",
                help="One that reads the sentences before fills its batches with them too, and so sees fewer sentences "
                "in as many updates.",
            )
            described = right.text_input(
                "Or any other, with options or of several systems",
                key="described",
                placeholder="NAME:option=value or NAME+NAME",
                help="Options change a system: `coverage:form=subtractive`. A plus joins the mechanisms of several, on "
                "the backbone of the first: `pfrnn-loss+future-cost-2`. `workbench experiment systems` lists them.",
            ).strip()
            if chosen := described or listed:
                add_to_demo(chosen, existing)
else:
    build = ("demo", "--runs", str(frame.root))
    with errors_as_messages():
        job_view.offer(frame.root, build, "Build the demo", "Demo", main=True)
    st.code(shlex.join(["workbench", *build]), language="bash")

machine = st.expander("This machine: device, fonts, versions", key="machine", on_change="rerun")
if machine.open:
    parts_of_machine = health.health()
    with machine:
        st.dataframe(
            {"part": [part.name for part in parts_of_machine], "value": [part.value for part in parts_of_machine]},
            hide_index=True,
            placeholder="–",
            column_config={"part": "Part", "value": "Value"},
            width=700,
            height="content",
            alt="Device, fonts and versions",
        )
        for part in parts_of_machine:
            if part.advice:
                st.warning(escape_markdown(part.advice))

if parts := plugins.plugged_in():
    st.subheader("Plug-ins")
    st.dataframe(
        {"kind": [part.kind for part in parts], "name": [part.name for part in parts],
         "package": [part.package for part in parts], "joined": [not part.problem for part in parts]},
        hide_index=True, placeholder="–",
        width=700,
        height="content",
        alt="Parts that other packages bring",
    )  # fmt: skip
    for plugged in parts:
        if plugged.problem:
            st.warning(escape_markdown(f"{plugged.package}, {plugged.kind}, {plugged.name}: {plugged.problem}."))
