"""The command line: thin commands that call one function each. Heavy imports are lazy, so that --help is quick."""

from __future__ import annotations

import contextlib
import os
import sys

from workbench.cli import (
    adequacy,
    analyze,
    beam_search,
    benchmark,
    contrastive,
    data,
    evaluate,
    experiments,
    export,
    figure,
    human_eval,
    import_translations,
    open_models,
    papers,
    report,
    rerank,
    runs,
    scale,
    serve_app,
    trace,
    train,
    translate,
)
from workbench.cli.sentences import of_the_system
from workbench.cli.shared import app, refuse
from workbench.cli.terminal import say, warn_readably

__all__ = [
    "adequacy",
    "analyze",
    "app",
    "beam_search",
    "benchmark",
    "contrastive",
    "data",
    "evaluate",
    "experiments",
    "export",
    "figure",
    "human_eval",
    "import_translations",
    "main",
    "open_models",
    "papers",
    "report",
    "rerank",
    "runs",
    "scale",
    "serve_app",
    "trace",
    "train",
    "translate",
]

# Errors that are a sentence for the user, by name, so that none of their modules is imported for --help.
SENTENCES = {
    "TextError",
    "ConfigError",
    "FolderError",
    "CheckpointError",
    "RunError",
    "TraceError",
    "TranslatorError",
    "TrainingError",
    "MissingGlyphs",
    "MissingLibrary",
    "ScaleError",
    "AccessError",
    "ReadOnlyError",
}
# Commands in which PyTorch takes and frees much memory, by their first words.
ALLOCATING = {
    ("train",),
    ("resume",),
    ("demo",),
    ("translate",),
    ("evaluate",),
    ("experiment", "run"),
    ("benchmark", "speed"),
    ("benchmark", "end-to-end"),
}


def _leave_group() -> None:
    """Close the process group before exit: a process that ends with an open group may be aborted by its threads."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def main() -> None:
    """The `workbench` command."""
    from core_models.resources import allocator_settings
    from workbench.jobs import renamed_commands, safe_path

    safe_path.leave_current_folder()
    words = renamed_commands.current(sys.argv[1:])[0]
    if (
        sys.platform == "linux"
        and {tuple(words[:1]), tuple(words[:2])} & ALLOCATING
        and "--help" not in sys.argv
        and "MALLOC_TRIM_THRESHOLD_" not in os.environ
    ):
        os.execve(
            sys.executable,
            safe_path.module("workbench.cli", *sys.argv[1:]),
            safe_path.environment(**allocator_settings()),
        )
    warn_readably()
    with contextlib.suppress(AttributeError):  # a replaced stdout that is no file, e.g. in a test
        sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]  # names as the disk has them
    try:
        app(prog_name="workbench")  # not the name of the module after a restart
    except SystemExit as end:
        if end.code == 130:  # Typer's exit code for Ctrl-C
            say("\nstopped; nothing is half-written, and a run in training can be resumed", err=True)
        if not end.code:
            _leave_group()
        raise
    except UnicodeEncodeError as error:
        if os.environ.get("WORKBENCH_DEBUG"):
            raise
        shown = str(error.object).encode(errors="backslashreplace").decode()
        refuse(f"{shown[:300]!r} holds characters that {error.encoding} cannot write; rename what is called so")
    except Exception as error:
        sentence = str(error) if type(error).__name__ in SENTENCES else of_the_system(error)
        if sentence is None or os.environ.get("WORKBENCH_DEBUG"):
            raise
        refuse(sentence)
