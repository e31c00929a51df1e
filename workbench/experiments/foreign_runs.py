"""Models of Hugging Face as runs: a run folder that points at the model's, and stores what is made with it."""

from __future__ import annotations

import re
from pathlib import Path

from core_models.config import CONFIG, RunConfig, TrainingConfig
from core_models.devices import check_device
from core_models.files.atomic_folders import anything, atomic_replace_folder
from core_models.settings import write_yaml
from core_models.text.prepared import Prepared
from workbench.export.huggingface import check_transformers
from workbench.export.plain_transformer import refuse_taken
from workbench.store.runs import DEPTH, Run, RunError, open_run

NAME = re.compile(r"\w[\w.+ -]*")


def folder_of(root: Path, name: str) -> Path:
    """The folder of a run of this name, such as `opus` or `foreign/opus`; raises RunError for no name of a run."""
    parts = Path(name).parts
    if not name or not all(map(NAME.fullmatch, parts)):
        raise RunError(f"{name!r}: no name for a run; use letters, digits, and - _ . + between them")
    if len(parts) > DEPTH:
        raise RunError(f"{name!r}: no page would find this run; name it RUN or GROUP/RUN")
    return root / name


def open_huggingface(
    path: Path,
    folder: Path,
    data: Path | None = None,
    source_language: str = "",
    target_language: str = "",
    dtype: str = "float32",
    template: Path | None = None,
    device: str = "cpu",
) -> tuple[Run, list[str]]:
    """Write a run that points at a model folder, after opening it once.

    data: prepared data with the test sets that it can translate. template: for a decoder-only model, a file with the
    text around {source}; the run holds the text, without a line break at its end. device: where it is opened. Returns
    the run, and the settings of the model's own search that the workbench does not have. Raises RunError if `folder`
    exists, ConfigError for a model that cannot be opened, or on a device that is not there.
    """
    refuse_taken(folder)
    check_transformers()
    check_device(device)
    from core_models.foreign import describe_model, open_model, search_of

    stored = describe_model(path, source_language, target_language, dtype, _text_of(template))
    opened = open_model(stored, device)
    search, unknown = search_of(path)
    config = RunConfig(
        name=folder.name,
        system=stored.model_type,
        data="" if data is None else str(Prepared.open(data).folder.resolve()),
        model=opened.system.config,
        training=TrainingConfig(max_steps=1),
        search=search,
        foreign=stored,
    )
    with atomic_replace_folder(folder, "open hf", anything) as unfinished:
        write_yaml(unfinished / CONFIG, config.model_dump(mode="json", exclude_none=True))
    return open_run(folder), unknown


def _text_of(template: Path | None) -> str:
    if template is None:
        return ""
    try:
        text = template.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{template}: cannot be read ({error}); name a text with {{source}} in it") from None
    if not text:
        raise RunError(f"{template}: the template is empty; write {{source}} where the text to translate is to stand")
    return text
