"""workbench data: make, import and prepare parallel text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.numbers import Seed
from workbench.cli.shared import (
    bar,
    data_app,
    refuse,
)
from workbench.cli.terminal import say


@data_app.command("controlled")
def data_controlled(
    out: Annotated[Path, typer.Option(help="Folder to write")],
    sentences: Annotated[int, typer.Option(help="Number of training sentences", min=1)] = 12000,
    dev: Annotated[int, typer.Option(help="Number of development sentences", min=1)] = 500,
    test: Annotated[int, typer.Option(help="Number of test sentences", min=1)] = 500,
    seed: Seed = 1,
    long: Annotated[
        int, typer.Option(help="Number of sentences in a further test set, each of more than 25 words", min=0)
    ] = 0,
) -> None:
    """Write the controlled corpus: parallel documents whose truth is known, and the oracles that bound a system."""
    from core_models.text import controlled

    corpus = controlled.generate(sentences, dev, test, seed, long=long)
    controlled.write(corpus, out)
    say(controlled.format_oracles(controlled.oracles(corpus)))


_FILES = "SOURCE,TARGET (plain or .gz) or one FILE.tsv"


def _read_text(files: str, name: str) -> Any:
    """Read parallel text from SOURCE,TARGET or FILE.tsv, with `.docids` beside the source."""
    from core_models.text.parallel import TextError, read_parallel, read_tsv

    source, comma, target = files.partition(",")
    if comma:
        return read_parallel(source, target, name=name)
    if not source.endswith((".tsv", ".tsv.gz")):
        raise TextError(f"{files!r}: write SOURCE,TARGET or FILE.tsv")
    return read_tsv(source, name=name)


@data_app.command("prepare")
def data_prepare(
    train: Annotated[str, typer.Option(help=f"Training text: {_FILES}")],
    dev: Annotated[str, typer.Option(help=f"Development text: {_FILES}")],
    out: Annotated[Path, typer.Option(help="Folder to write")],
    test: Annotated[
        list[str] | None, typer.Option(help="Test set as NAME=SOURCE,TARGET or NAME=FILE.tsv; may be repeated")
    ] = None,
    vocab_size: Annotated[int, typer.Option(help="Vocabulary size in subwords (of each side without --joint)")] = 8000,
    model_type: Annotated[str, typer.Option(help="SentencePiece model: unigram or bpe")] = "unigram",
    joint: Annotated[bool, typer.Option(help="Share one vocabulary between source and target")] = True,
    languages: Annotated[str, typer.Option(help="Languages of source and target, e.g. en-de")] = "",
    max_length: Annotated[
        int, typer.Option(help="Maximum sentence length in subwords; longer pairs are left out", min=1)
    ] = 256,
    seed: Seed = 1,
    replace: Annotated[bool, typer.Option("--replace", help="Write over text that was prepared in the folder")] = False,
) -> None:
    """Train a SentencePiece vocabulary and binarize parallel text; `.docids` beside a source file are taken along."""
    from core_models.text.prepared import MANIFEST, prepare

    if (out / MANIFEST).exists() and not replace:
        refuse(f"{out} holds prepared text, which runs may be trained on; give another --out, or --replace")
    tests = {}
    for setting in test or []:
        name, sign, files = setting.partition("=")
        if not sign:
            refuse(f"--test {setting!r}: write NAME=SOURCE,TARGET or NAME=FILE.tsv")
        tests[name] = _read_text(files, name)
    source_language, target_language = language_pair(languages, "--languages") if languages else ("", "")
    texts = _read_text(train, "train"), _read_text(dev, "dev"), tests
    with bar("preparing") as show:
        prepared = prepare(
            out,
            *texts,
            vocab_size,
            model_type,
            joint,
            source_language,
            target_language,
            max_length,
            seed=seed,
            report=show,
        )
    for name, split in prepared.manifest["splits"].items():
        say(
            f"{name}: {split['sentences']} sentences, {split['source_tokens']} + {split['target_tokens']} pieces, "
            f"left out: {split['left_out']['too_long']} too long, {split['left_out']['empty']} empty"
        )
        for why, lines in split["left_out_lines"].items():
            if lines:
                more = ", …" if split["left_out"][why] > len(lines) else ""
                say(f"  {why.replace('_', ' ')}: line {', '.join(map(str, lines))}{more}")
    for name in tests:
        say(f"test set {name}: {len(tests[name])} sentences")


def language_pair(text: str, option: str) -> tuple[str, str]:
    source, sign, target = text.partition("-")
    if not (source and sign and target):
        refuse(f"{option} {text!r}: write SOURCE-TARGET, such as en-de")
    return source, target


@data_app.command("import")
def data_import(
    name: Annotated[
        str, typer.Argument(help="Test set as sacrebleu:NAME, or a Hugging Face data set by name or local path")
    ],
    pair: Annotated[str, typer.Option(help="Languages of source and target, e.g. en-de")],
    out: Annotated[Path, typer.Option(help="Prefix of the files to write")],
    split: Annotated[str, typer.Option(help="Split of a Hugging Face data set")] = "train",
    configuration: Annotated[
        str | None, typer.Option(help="Configuration of a Hugging Face data set, e.g. de-en of wmt14")
    ] = None,
    documents: Annotated[
        str | None, typer.Option(help="Column of a Hugging Face data set that holds document ids")
    ] = None,
) -> None:
    """Write a test set of sacreBLEU or a translation set of Hugging Face `datasets` as plain parallel text."""
    from core_models.files.file_marks import atomic_replace_files
    from core_models.text.imports import import_huggingface, import_sacrebleu
    from core_models.text.parallel import write_lines

    source, target = language_pair(pair, "--pair")
    kind, _, test_set = name.partition(":")
    with atomic_replace_files(out, (source, target, "docids"), "data import") as part:
        if kind == "sacrebleu":
            text = import_sacrebleu(test_set, pair)
        else:
            text = import_huggingface(name, source, target, split, configuration, documents)
        for language, lines in ((source, text.sources), (target, text.targets), ("docids", text.documents)):
            if lines is not None:
                write_lines(part / f"{out.name}.{language}", lines)
    say(f"{len(text)} sentence pairs: {out}.{source}, {out}.{target}")
