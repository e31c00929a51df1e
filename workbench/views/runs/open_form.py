"""Opening a model of another library on the page Runs: a folder of Hugging Face, or a checkpoint of fairseq."""

from __future__ import annotations

import shlex
from pathlib import Path

import streamlit as st

from workbench.app.components import empty_states
from workbench.app.frame import Frame, escape_markdown, show_error
from workbench.store import read_only
from workbench.store.runs import Run, RunError

HUGGING_FACE, FAIRSEQ = "Hugging Face", "fairseq"
_TEMPLATE = "A text file with {source} where the sentence stands, for decoder-only models such as Llama, Qwen, Gemma"
DTYPES = ("float32", "bfloat16", "float16")
_OPENED, _REFUSED = "opened-model", "refused-model"  # in the session: the run's name; the error, until shown


def show(frame: Frame) -> None:
    """A popover with the form, and why it was refused."""
    closed = read_only.active()
    data = _data_folders(frame)
    with st.popover("Open a model", disabled=closed, help=read_only.WHY if closed else None):
        library = st.segmented_control(
            "Library", [HUGGING_FACE, FAIRSEQ], default=HUGGING_FACE, required=True, key="open-library"
        )
        with st.form("open-model", border=False):
            st.text_input("Name of the run", key="open-name", placeholder="opus")
            if library == HUGGING_FACE:
                _ask_for_folder()
            else:
                _ask_for_checkpoint()
            st.selectbox(
                "Test sets of", [None, *data], 1 if data else 0, key="open-data",
                format_func=lambda folder: data[folder] if folder else "no run; translate files",
            )  # fmt: skip
            st.form_submit_button("Open", type="primary", disabled=closed, on_click=_submit, args=(frame.root, library))
        if refused := st.session_state.pop(_REFUSED, None):
            show_error(refused)


def _ask_for_folder() -> None:
    st.text_input("Folder of the model on this machine", key="open-path", help="With config.json and safetensors")
    left, right, last = st.columns(3)
    left.text_input("Source language", key="open-from", placeholder="eng_Latn", help="M2M-100, NLLB and mBART")
    right.text_input("Target language", key="open-to", placeholder="deu_Latn", help="M2M-100, NLLB and mBART")
    last.selectbox("Type of the weights", DTYPES, key="open-dtype")
    st.text_input("Prompt template", key="open-template", placeholder="template.txt", help=_TEMPLATE)


def _ask_for_checkpoint() -> None:
    st.text_input("Checkpoint on this machine", key="open-path", placeholder="checkpoint_best.pt")
    left, right = st.columns(2)
    left.text_input("Source dictionary", key="open-source-dict", placeholder="dict.en.txt")
    right.text_input("Target dictionary", key="open-target-dict", placeholder="dict.de.txt")
    st.text_input("BPE codes", key="open-codes", help="Of subword-nmt; without them texts are segmented already")


def _data_folders(frame: Frame) -> dict[str, str]:
    """The prepared data of the chosen runs: the folder, and the first run that has it."""
    folders: dict[str, str] = {}
    for run in frame.chosen:
        if not run.outside and run.config.data:
            folders.setdefault(str(run.config.data_folder(run.folder)), run.name)
    return folders


def _submit(root: Path, library: str) -> None:
    st.session_state.pop(_OPENED, None)
    try:
        st.session_state[_OPENED] = _open(root, library).folder.relative_to(root).as_posix()
    except (ValueError, OSError) as error:
        st.session_state[_REFUSED] = error


def _open(root: Path, library: str) -> Run:
    """Make the run of the form. Raises ReadOnlyError, and RunError and ConfigError for what cannot be opened."""
    from workbench.experiments.foreign_runs import folder_of

    read_only.check()
    folder, path = folder_of(root, _text("open-name")), _text("open-path")
    data = st.session_state["open-data"]
    if not path:
        raise RunError("Say where the model lies on this machine.")
    if library == FAIRSEQ:
        from workbench.experiments.fairseq_runs import open_fairseq

        dictionaries = Path(_text("open-source-dict")), Path(_text("open-target-dict"))
        codes = Path(_text("open-codes")) if _text("open-codes") else None
        return open_fairseq(Path(path), folder, dictionaries, (codes, codes), data and Path(data))
    from workbench.experiments.foreign_runs import open_huggingface

    languages = _text("open-from"), _text("open-to")
    template = Path(_text("open-template")) if _text("open-template") else None
    dtype = st.session_state["open-dtype"]
    run, _ = open_huggingface(Path(path), folder, data and Path(data), *languages, dtype, template)
    return run


def _text(key: str) -> str:
    return str(st.session_state[key]).strip()


def show_opened(frame: Frame) -> None:
    """The run that was opened, and the commands that translate its test sets, as jobs."""
    opened = next((run for run in frame.runs if run.name == st.session_state.get(_OPENED)), None)
    if opened is None:
        return
    st.success(escape_markdown(f"{opened.name} is there; choose it in the sidebar, or in the table below."))
    if opened.config.data and not opened.tests():
        test = frame.view.test or "test"
        command = f"workbench translate {opened.typed} --test {shlex.quote(test)} --save-beams"
        empty_states.empty_state("It has translated nothing yet:", command)
