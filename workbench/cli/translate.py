"""workbench translate and score."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.arrays import (
    AT_ONCE,
    CPUS,
    GPUS,
    LOCAL,
    SLURM_TIME,
    TASKS,
    AtOnce,
    Cluster,
    Cpus,
    Gpus,
    JobParameters,
    Launcher,
    Partition,
    SlurmTime,
    Tasks,
    array_settings,
    submit_works,
)
from workbench.cli.numbers import MOST_SEED
from workbench.cli.shared import (
    Device,
    RunPath,
    RunPaths,
    app,
    bar,
    pairs,
    refuse,
)
from workbench.cli.terminal import say
from workbench.evaluation.distributed import own_device, rank, world

if TYPE_CHECKING:
    from core_models.translator import Translation, Translator
    from workbench.evaluation.dealt import Translating
    from workbench.evaluation.job_array import ArraySettings
    from workbench.evaluation.translate import SearchEngine
    from workbench.store.runs import Run

    Lists = list[list[Translation]]

ENGINES = ("workbench", "ctranslate2")

DocIds = Annotated[
    Path | None, typer.Option(help="File of document ids, one per line; by default NAME.docids beside the text")
]

Engine = Annotated[
    str,
    typer.Option(
        help="Engine of the search: workbench, or ctranslate2 for a Transformer without mechanisms (records nothing, "
        "needs penalty=power)"
    ),
]
Search = Annotated[
    list[str] | None,
    typer.Option(help="Search setting as key=value, e.g. penalty=power or test_loss=none; may be repeated"),
]


@app.command()
def translate(
    runs: RunPaths,
    test: Annotated[str | None, typer.Option(help="Name of a test set of the prepared data")] = None,
    input: Annotated[
        Path | None, typer.Option("--input", "-i", help="File of sentences, one per line; - for standard input")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the translations of --input; by default standard output"),
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="Forced prefix of every translation")] = None,
    doc_ids: DocIds = None,
    context: Annotated[
        list[str] | None,
        typer.Option(help="Context sentence before every line of --input, the farthest first; may be repeated"),
    ] = None,
    context_target: Annotated[
        list[str] | None,
        typer.Option(help="Translation of each --context, for systems that read it; by default the run's own"),
    ] = None,
    beam: Annotated[int | None, typer.Option(help="Beam size; the run's own by default")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Length penalty; the run's own by default")] = None,
    n_best: Annotated[int | None, typer.Option(help="Number of hypotheses to keep; the run's own by default")] = None,
    num_samples: Annotated[
        int,
        typer.Option(help="Number of translations to sample per sentence, instead of beam search", min=0, max=10_000),
    ] = 0,
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature; by default 1")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of the samples; by default 1", min=0, max=MOST_SEED)
    ] = None,
    save_beams: Annotated[bool, typer.Option(help="Save beam-search trees (with --test)")] = False,
    ensemble: Annotated[
        bool, typer.Option(help="Decode --input with all the runs as an ensemble, by the search of the first")
    ] = False,
    search: Search = None,
    engine: Engine = ENGINES[0],
    device: Device = "cpu",
    launcher: Launcher = LOCAL,
    tasks: Tasks = TASKS,
    cluster: Cluster = None,
    partition: Partition = None,
    slurm_time: SlurmTime = SLURM_TIME,
    gpus: Gpus = GPUS,
    cpus: Cpus = CPUS,
    at_once: AtOnce = AT_ONCE,
    job: JobParameters = None,
) -> None:
    """Translate a test set into each run's folder, or a file of sentences; under torchrun the processes share it.

    With --launcher submitit tasks of an array share a test set, and the last one writes the translations.
    With --num-samples, or an n-best of more than one (--n-best, or the run's own), each line of a file's output is
    NUMBER, SCORE and TEXT, the sentences numbered from 0.
    """
    from workbench.store.runs import open_run

    if (test is None) == (input is None):
        refuse("give either --test NAME or --input FILE")
    check_engine(engine)
    changes = {"beam": beam, "length_penalty": length_penalty, "n_best": n_best, **search_changes(search)}
    drawing = {"temperature": temperature, "seed": seed}
    sampling: dict[str, Any] = {name: value for name, value in drawing.items() if value is not None}
    settings = array_settings(launcher, cluster, partition, slurm_time, gpus, cpus, at_once, job, tasks)
    if settings is not None:
        _refuse_with("--launcher submitit", input=input, engine=engine != ENGINES[0])
    if test is not None:
        file_options = {"doc_ids": doc_ids, "context": context, "context_target": context_target}
        _refuse_with("--test", output=output, prefix=prefix, num_samples=num_samples, ensemble=ensemble, **file_options)
        _refuse_with("--test", **dict.fromkeys(sampling, True))
        if settings is not None:
            work = translating(test, tasks, device, settings, save_beams, **changes)
            submit_works({str(run): [work] for run in runs}, "translate", settings)
        else:
            translate_test_set(runs, test, save_beams, device, engine, **changes)
        return
    _refuse_with("--input", save_beams=save_beams)
    if engine != ENGINES[0]:
        _refuse_with(f"--engine {engine}", prefix=prefix, num_samples=num_samples, ensemble=ensemble)
    if num_samples:
        narrowed = {name: changes[name] is not None for name in ("beam", "length_penalty", "n_best")}
        _refuse_with("--num-samples", prefix=prefix, search=search, **narrowed)
    else:
        _refuse_with("--input without --num-samples", **dict.fromkeys(sampling, True))
    assert input is not None  # since there is no --test
    _check_file(runs, input, output, num_samples, ensemble)
    if doc_ids is not None and (context or str(input) == "-"):
        refuse(
            "--doc-ids is for a file, whose lines are what stands before each; --context for any line: leave one out"
        )
    lines, translator = _lines(input), _loaded(runs, device)
    _check_docids(translator, runs[0], doc_ids)
    documents = _documents(input, doc_ids) if translator.context.sentences and not context else None
    context_arguments = _standing_before(translator, len(lines), documents, context, context_target)
    if num_samples:
        lists: Lists | None = translator.sample(lines, num_samples, **sampling, **context_arguments)
    else:
        by = _engine_of(engine, open_run(runs[0]), device)
        lists = _searched(
            translator, lines, {**changes, **context_arguments, **({"prefix": prefix} if prefix else {})}, by
        )
    if lists is not None:
        lists = _without_empty(lines, lists)
        one_each = (num_samples or changes["n_best"] or translator.search.n_best) == 1
        _write(_texts(lists, one_each), output)


def _check_file(runs: list[Path], input: Path, output: Path | None, samples: int, ensemble: bool) -> None:
    """Refuse input and output that cannot be read, translated or written, before the translation starts."""
    if world() > 1 and (samples or str(input) == "-"):
        refuse("--num-samples and standard input are for one process: start it without torchrun")
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        refuse(f"--output {output}: name a file in a folder that is there; nothing was translated yet")
    if len(runs) > 1 and not ensemble:
        refuse("several runs translate one file only as an --ensemble")
    _require_models(runs)


def _lines(input: Path) -> list[str]:
    """Read the sentences of a file or of standard input."""
    from core_models.text.parallel import read_lines

    return _standard_input() if str(input) == "-" else read_lines(input)


def _documents(input: Path, docids: Path | None) -> list[str] | None:
    """The document of each sentence of a file, if known; None for standard input."""
    from core_models.text.parallel import read_parallel

    return None if str(input) == "-" else read_parallel(input, documents=docids).documents


def _standing_before(
    translator: Translator,
    lines: int,
    documents: list[str] | None,
    context: list[str] | None,
    outputs: list[str] | None,
) -> dict[str, Any]:
    """The context of the lines as a translator's arguments; warns if the system reads context and none is given."""
    from workbench.evaluation.document_context import own_outputs

    if outputs and not context:
        refuse("--context-target goes with --context: give the sentences themselves too")
    if context:
        written: list[list[str | None]] | None = [[*reversed(outputs)]] if outputs else None
        if translator.context.outputs and written is None:
            written = own_outputs(translator, [context[::-1]])
        return {"contexts": [context[::-1]] * lines, "context_outputs": None if written is None else written * lines}
    if documents is None:
        _say_alone(translator, "--doc-ids or --context")
    return {"documents": documents} if translator.context.sentences else {}


def _check_docids(translator: Translator, run: Path, docids: Path | None) -> None:
    """Refuse document ids for a run that reads no context."""
    if docids is not None and not translator.context.sentences:
        refuse(f"--doc-ids {docids}: {run} was trained without context and reads single sentences; leave it out")


def _say_alone(translator: Translator, options: str) -> None:
    """Warn that a system that reads context gets single sentences."""
    reach = translator.context.sentences
    if reach:
        warning = (
            f"This system reads up to {reach} sentences before each: here every line stands alone. Give {options}."
        )
        say(warning, err=True)


def _loaded(runs: list[Path], device: str) -> Translator:
    import core_models
    from workbench.store.runs import open_run

    return core_models.load([open_run(run).reference for run in runs], own_device(device))


def _searched(
    translator: Translator, lines: list[str], changes: dict[str, Any], engine: SearchEngine | None
) -> Lists | None:
    """The n-best list of each sentence, best first; None on all processes but the first."""
    from workbench.evaluation.translate import translate_lines

    translations = (engine.translate if engine else translate_lines)(translator, lines, **changes)
    return None if translations is None else [[best, *best.n_best] for best in translations]


def _without_empty(lines: Sequence[str], lists: Lists) -> Lists:
    """The lists with an empty translation of each empty line, for which a system has nothing to translate."""
    empty = [not line.strip() for line in lines]
    if any(empty):
        say(f"{sum(empty)} of {len(lines)} lines are empty, and so are their translations", err=True)
    return [
        [replace(hypothesis, text="") for hypothesis in hypotheses] if is_empty else hypotheses
        for is_empty, hypotheses in zip(empty, lists, strict=True)
    ]


def _texts(lists: Lists, one_each: bool) -> list[str]:
    if one_each:
        return [hypothesis.text for (hypothesis,) in lists]
    # A search may find fewer hypotheses than requested, so each line has its sentence's number.
    return [
        f"{number}\t{hypothesis.score:.4f}\t{hypothesis.text}"
        for number, hypotheses in enumerate(lists)
        for hypothesis in hypotheses
    ]


def _write(texts: list[str], output: Path | None) -> None:
    from core_models.text.parallel import write_lines

    if output is None:
        say("\n".join(texts))
    else:
        write_lines(output, texts)


def _refuse_with(option: str, **options: object) -> None:
    """Refuse options that have no effect together with `option`."""
    idle = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if idle:
        refuse(f"{', '.join(idle)} would change nothing beside {option}; leave one of the two out")


def _require_models(references: list[Path]) -> None:
    """Refuse outside runs; other problems are reported by loading."""
    from core_models.config import split_reference
    from workbench.store.runs import Run

    for reference in references:
        folder, _ = split_reference(reference)
        Run(folder, folder.name).require_model()


def search_changes(settings: list[str] | None) -> dict[str, Any]:
    """The settings of --search by their names in the configuration; refuses unknown ones."""
    from core_models.config import SearchConfig
    from core_models.settings import nearest

    changes, known = SearchConfig.by_current_names(pairs(settings, "--search")), list(SearchConfig.model_fields)
    for key in changes:
        if key not in known:
            refuse(f"--search {key}: the search has no such setting; {nearest(key, known)}")
    return changes


def _standard_input() -> list[str]:
    """Lines of standard input, UTF-8 whatever the locale; an empty last line counts as one, as in a file."""
    from core_models.text.parallel import split_lines

    content = sys.stdin.buffer.read()
    if not content:
        refuse("standard input is empty; write a sentence a line to it")
    return split_lines(content, "standard input")


def check_engine(engine: str) -> None:
    if engine not in ENGINES:
        refuse(f"--engine {engine}: choose {' or '.join(ENGINES)}")


def _engine_of(engine: str, run: Run, device: str) -> SearchEngine | None:
    """What searches in place of the workbench; None for that."""
    if engine == ENGINES[0]:
        return None
    if world() > 1:
        refuse(f"--engine {engine} is for one process: start it without torchrun")
    from workbench.export.ctranslate2_search import ctranslate2_engine

    return ctranslate2_engine(run, device)


def translating(
    test: str, tasks: int, device: str, settings: ArraySettings, trees: bool = False, **search: Any
) -> Translating:
    """The translation of a test set as work of an array."""
    from workbench.evaluation.dealt import Translating

    return Translating(
        test, device, settings.cpus, tasks, trees, {key: v for key, v in search.items() if v is not None}
    )


def translate_test_set(runs: list[Path], test: str, trees: bool, device: str, engine: str, **search: Any) -> None:
    from workbench.evaluation.translate import test_set, translate_test
    from workbench.store.runs import open_run

    for path in runs:
        run = open_run(path)
        by = _engine_of(engine, run, device)
        prepared_set, truth = test_set(run, test)
        with bar(f"translating {test} with {run.name}") as show:
            done = translate_test(
                run,
                prepared_set,
                truth,
                trees,
                device,
                step=show,
                engine=by,
                **search,
            )
        if rank() == 0:
            say(f"{done.folder}: {len(done)} sentences in {done.meta['seconds']} s", err=True)


@app.command()
def score(
    run: RunPath,
    source: Annotated[Path, typer.Option(help="File of source sentences, one per line")],
    target: Annotated[Path, typer.Option(help="File of translations to score, one per line")],
    doc_ids: DocIds = None,
    device: Device = "cpu",
) -> None:
    """Force-decode given translations: one line each with its log-probability (nats) and its number of tokens."""
    from core_models.text.parallel import read_parallel

    if rank() != 0:
        return  # one process does it all
    _require_models([run])
    text, translator = read_parallel(source, target, doc_ids), _loaded([run], device)
    _check_docids(translator, run, doc_ids)
    if text.documents is None:
        _say_alone(translator, "--doc-ids")
    for scored in translator.score(text.sources, text.targets or [], text.documents):
        say(f"{scored.log_prob:.4f}\t{len(scored.tokens)}")
