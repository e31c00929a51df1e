"""A box for a file from the reader's machine. It knows no page and no file format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.store import read_only

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile


def take_in(endings: Sequence[str], key: str, keep: Callable[[UploadedFile], str]) -> None:
    """The box; `keep` takes a file in and says what became of it. Once: a file stays in its box while the page is run
    again and again, and what was kept may have changed since. `key` names what the file is for."""
    closed = read_only.active()
    given = st.file_uploader(
        "File", type=list(endings), key=key, disabled=closed, help=read_only.WHY if closed else None
    )
    kept = f"_kept-{key}"
    if given is not None and st.session_state.get(kept) != given.file_id:
        said = keep(given)
        st.session_state[kept] = given.file_id
        st.text(said)
