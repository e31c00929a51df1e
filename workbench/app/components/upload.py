"""Upload of a file from the user's machine. Knows no page and no file format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.store import read_only

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile


def take_in(endings: Sequence[str], key: str, keep: Callable[[UploadedFile], str]) -> None:
    """An upload box; `keep` stores a file once and returns a message. `key` names the purpose of the file.

    Once, since the file stays in the box during reruns of the page, while the stored file may have changed.
    """
    closed = read_only.active()
    file = st.file_uploader(
        "File", type=list(endings), key=key, disabled=closed, help=read_only.WHY if closed else None
    )
    key_of_kept = f"_kept-{key}"
    if file is not None and st.session_state.get(key_of_kept) != file.file_id:
        message = keep(file)
        st.session_state[key_of_kept] = file.file_id
        st.text(message)
