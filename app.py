"""The workbench's server, for `streamlit run app.py`: what the browser shows is `workbench/app/script/router.py`."""

import streamlit as st

from workbench.app import server

# Streamlit reads this file for an assignment of an App, and serves it in place of the file as a page.
app = st.App(server.SCRIPT, **server.guarded(server.configured()))
