"""workbench open hf, fairseq: models of other libraries as runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.shared import open_app
from workbench.cli.terminal import say

TestData = Annotated[
    Path | None, typer.Option("--data", help="Prepared data whose test sets it is to translate, such as exhibits/data")
]


@open_app.command("hf")
def open_hf(
    model: Annotated[Path, typer.Argument(help="Folder of a model of Hugging Face, with config.json")],
    name: Annotated[str, typer.Option("--as", help="Name of the run")],
    source_language: Annotated[str, typer.Option("--from", help="Code of the source's language, eng_Latn")] = "",
    target_language: Annotated[str, typer.Option("--to", help="Code of the target's language, deu_Latn")] = "",
    template: Annotated[
        Path | None, typer.Option(help="Text around {source}, for a decoder-only model (Llama, Qwen, Gemma)")
    ] = None,
    dtype: Annotated[str, typer.Option(help="Type of the weights: float32, bfloat16 or float16")] = "float32",
    device: Annotated[str, typer.Option(help="Device on which the model is opened once, and checked")] = "cpu",
    data: TestData = None,
    runs: Annotated[Path | None, typer.Option(help="Folder of the runs")] = None,
) -> None:
    """Open an encoder-decoder (Marian, M2M-100, NLLB, mBART, BART, Pegasus, T5) or a decoder-only model as a run.

    The model is not copied, nor is the device stored: pages and commands have their own. A decoder-only one (Llama,
    Qwen2, Qwen3, Gemma, Gemma 2) translates by a template.
    """
    from core_models.devices import resolved
    from workbench.experiments.foreign_runs import folder_of, open_huggingface
    from workbench.store.exhibits import run_folder
    from workbench.store.runs import runs_folder

    folder = folder_of(runs or runs_folder(), name)
    data = data and run_folder(data)
    run, unknown = open_huggingface(
        model, folder, data, source_language, target_language, dtype, template, resolved(device)
    )
    say(f"{run.folder}: {run.system}, {run.config.foreign.path if run.config.foreign else model}")
    if unknown:
        say(f"its own search also has {', '.join(unknown)}, which the workbench does not", err=True)


@open_app.command("fairseq")
def open_fairseq_checkpoint(
    checkpoint: Annotated[Path, typer.Argument(help="Checkpoint of fairseq's transformer, checkpoint_best.pt")],
    name: Annotated[str, typer.Option("--as", help="Name of the run")],
    source_dict: Annotated[Path, typer.Option(help="Dictionary of the source, dict.SOURCE.txt")],
    target_dict: Annotated[Path, typer.Option(help="Dictionary of the target, dict.TARGET.txt")],
    bpe_codes: Annotated[
        Path | None, typer.Option(help="BPE codes of subword-nmt; without them texts are segmented already")
    ] = None,
    target_bpe_codes: Annotated[
        Path | None, typer.Option(help="BPE codes of the target, if they are not those of --bpe-codes")
    ] = None,
    data: TestData = None,
    runs: Annotated[Path | None, typer.Option(help="Folder of the runs")] = None,
) -> None:
    """Copy a checkpoint of fairseq's Transformer into a run of our own format."""
    from workbench.experiments.fairseq_runs import open_fairseq
    from workbench.experiments.foreign_runs import folder_of
    from workbench.store.exhibits import run_folder
    from workbench.store.runs import runs_folder

    codes = bpe_codes, target_bpe_codes or bpe_codes
    data = data and run_folder(data)
    run = open_fairseq(checkpoint, folder_of(runs or runs_folder(), name), (source_dict, target_dict), codes, data)
    say(f"{run.folder}: {run.system}, a copy of {checkpoint}")
