"""workbench export ctranslate2 | huggingface: a run for another engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.shared import RunPath, export_app
from workbench.cli.terminal import say


@export_app.command("ctranslate2")
def export_ctranslate2_command(
    run: RunPath,
    out: Annotated[Path, typer.Option(help="Folder to write")],
    quantization: Annotated[
        str,
        typer.Option(help="Storage type of the weights: float32, int8, int16, float16, bfloat16, int8_float16, ..."),
    ] = "float32",
) -> None:
    """Write a transformer without mechanisms as a CTranslate2 model with its vocabularies, and say how to run it."""
    from workbench.export.ctranslate2 import export_ctranslate2
    from workbench.store.runs import open_run

    folder = export_ctranslate2(open_run(run), out, quantization)
    say((folder / "README.txt").read_text(encoding="utf-8"), nl=False)


@export_app.command("huggingface")
def export_huggingface_command(run: RunPath, out: Annotated[Path, typer.Option(help="Folder to write")]) -> None:
    """Write a transformer without mechanisms as a model and tokenizer of Hugging Face, and say how to run it."""
    from workbench.export.huggingface import export_huggingface
    from workbench.store.runs import open_run

    folder = export_huggingface(open_run(run), out)
    say((folder / "README.txt").read_text(encoding="utf-8"), nl=False)
