from streamlit.testing.v1 import AppTest


def _page(by):
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx
    from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

    from workbench.app.rerun import rerun

    st.session_state["runs"] = st.session_state.get("runs", 0) + 1
    if st.session_state["runs"] == 1:  # a click reaches the server while the page computes
        context = get_script_run_ctx()
        context.script_requests.request_rerun(RerunData("asked=1", page_script_hash=context.page_script_hash))
        (rerun if by == "ours" else st.rerun)()  # noqa: TID251
    st.text(st.query_params.get("asked", "lost"))


def test_a_click_during_a_run_that_ends_in_a_rerun_is_not_lost():
    """With Streamlit's own rerun it is lost; once it no longer is, ours can go."""
    shown = {by: AppTest.from_function(_page, args=(by,)).run().text[0].value for by in ("ours", "streamlit")}
    assert shown == {"ours": "1", "streamlit": "lost"}


def _alone():
    import streamlit as st

    from workbench.app.rerun import rerun

    st.session_state["runs"] = st.session_state.get("runs", 0) + 1
    if st.session_state["runs"] == 1:
        rerun()
    st.text(st.session_state["runs"])


def test_without_a_click_the_page_runs_once_more():
    assert AppTest.from_function(_alone).run().text[0].value == "2"
