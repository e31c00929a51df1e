"""workbench benchmark speed, profile, launches, end-to-end: beside other engines and what multiply-adds allow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core_models.files.atomic_files import write_atomic
from workbench.cli.shared import Device, RunPath, benchmark_app, need_folder, print_table, refuse, whole_numbers
from workbench.cli.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from workbench.benchmark.measurements import Key, Measurements
    from workbench.benchmark.rounds import Engine, Step
    from workbench.benchmark.workload import Conditions

    Planned = Sequence[tuple[Key, Engine]]

Threads = Annotated[int, typer.Option(help="Number of PyTorch threads; 0 for its own choice", min=0, max=1024)]
_BY_LENGTH = (
    *("length", "engine", "train_tokens_per_second", "train_ratio", "train_ceiling"),
    *("decode_sentences_per_second", "decode_ratio", "decode_ceiling"),
)


_FIGURES = (
    ("training", "train_tokens_per_second", "tokens"),
    ("decoding", "decode_sentences_per_second", "sentences"),
)


@benchmark_app.command("speed")
def benchmark_speed(
    systems: Annotated[
        list[str] | None, typer.Argument(help="Systems of the catalogue, or NAME+NAME, the baseline first")
    ] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option(help="Precision: float32, bfloat16 or int8 (decoding); may be repeated  [default: float32]"),
    ] = None,
    device: Device = "cpu",
    threads: Threads = 0,
    steps: Annotated[int, typer.Option(help="Number of timed training steps", min=1)] = 12,
    rounds: Annotated[int, typer.Option(help="Number of rounds; the table has their medians", min=1)] = 1,
    preset: Annotated[
        str, typer.Option(help="Size of systems that name no preset, and of the other engines: small or base")
    ] = "small",
    peers: Annotated[
        str | None,
        typer.Option(help="Path of a Python that has transformers and ctranslate2, to measure these engines too"),
    ] = None,
    lengths: Annotated[
        str | None, typer.Option(help="Sentence lengths in words, comma-separated, e.g. 10,20,50,100: a table for each")
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(help="File for the table, written after each measurement; the same command goes on from it"),
    ] = None,
    compile_routing: Annotated[
        bool,
        typer.Option("--compile-routing", help="Measure all but the first also with compiled routing, in training"),
    ] = False,
    decoding_only: Annotated[
        bool, typer.Option("--decoding-only", help="Measure the plain beam search alone, for short rounds")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print a JSON record for each, measured once and in this process, without ratios"),
    ] = False,
) -> None:
    """Measure systems on one shape: parameters, multiply-adds, speed, memory; ratios beside their ceilings.

    Each is measured in a process of its own, one after the other, and printed at once. With --csv what was measured is
    kept beside the table: stopped, the same command goes on from there. Speeds hold for a quiet machine.
    """
    names = [_in_preset(name, preset) for name in systems or ["transformer", "future-cost-1", "future-cost-2"]]
    precisions, length_mixes = precision or ["float32"], _lengths(lengths)
    from core_models.devices import usable

    _check(names, precisions, preset)
    device = usable(device)
    if peers is not None and lengths is not None:
        refuse("--lengths: other engines are measured on one mix of lengths; leave out --peers")
    if decoding_only and compile_routing:
        refuse("--compile-routing is for training; leave out --decoding-only")
    need_folder(csv, "--csv")
    if as_json and (peers is not None or csv is not None or rounds > 1):
        refuse("--json measures once, in this process, and prints; leave out --peers, --csv and --rounds")
    from workbench.benchmark import time_estimate
    from workbench.benchmark.measurements import Measurements
    from workbench.benchmark.rounds import measured, plan
    from workbench.benchmark.workload import Conditions
    from workbench.store.csv_cells import csv_text

    once = as_json or not compile_routing  # else with plain and with compiled routing
    conditions = [
        Conditions(kind, device, threads, compiled, decoding_only)
        for kind in precisions
        for compiled in ([compile_routing] if once else [False, True])
    ]
    if as_json:
        for each, length, name in product(conditions, length_mixes, names):
            _print_record(name, steps, length, each)
        return
    settings = {
        "device": device,
        "threads": threads,
        "steps": steps,
        "preset": preset,
        "decoding_only": decoding_only,
        "machine": time_estimate.machine(device),
    }
    measurements = Measurements(csv, settings)
    planned = plan(length_mixes, rounds, _engines(names, steps, conditions, preset, peers))
    _announce(planned, measurements)
    for step in measured(planned, measurements):
        if not step.kept:
            say(_progress_line(step), err=True)
            if csv is not None:
                write_atomic(csv, csv_text(_table(planned, measurements)))
    table = _table(planned, measurements)
    if csv is not None:
        write_atomic(csv, csv_text(table))
    if lengths is None:
        print_table(table.set_index("engine").T.reset_index(names="what"))
    else:
        print_table(table[[name for name in _BY_LENGTH if name in table]])


def _engines(
    names: Sequence[str], steps: int, conditions: Sequence[Conditions], preset: str, peers: str | None
) -> list[Engine]:
    """The systems under each of the conditions, all but the first with compiled routing; then the other engines."""
    from workbench.benchmark import rounds, time_estimate

    plain = conditions[0]
    rate = time_estimate.probe(plain.device, plain.threads)
    engines = [
        rounds.ours(name, steps, each, time_estimate.seconds_of(name, steps, each.precision, rate))
        for each in conditions
        for name in names[each.compile_routing :]
    ]
    if peers is None:
        return engines
    seconds = time_estimate.seconds_of(_in_preset("transformer", preset), steps, "float32", rate)
    return [*engines, *rounds.others(peers, preset, plain, seconds)]


def _announce(planned: Planned, measurements: Measurements) -> None:
    """Print the number of measurements left and their estimated time."""
    from workbench.benchmark.rounds import seconds_left
    from workbench.benchmark.time_estimate import spoken

    n_stored = sum(measurements.get(key) is not None for key, _ in planned)
    kept_note = f"{n_stored} of {len(planned)} measurements are kept in {measurements.path}" if n_stored else ""
    if n_stored == len(planned):
        say(f"all {kept_note}; remove it to measure again", err=True)
        return
    time_left = spoken(seconds_left(planned, measurements))
    estimate = (
        f"the others take about {time_left}"
        if n_stored
        else f"{len(planned)} measurements, which take about {time_left}"
    )
    say("; ".join(part for part in (kept_note, estimate) if part) + "; guessed anew after each", err=True)


def _progress_line(step: Step) -> str:
    """A finished measurement as one line."""
    from workbench.benchmark.time_estimate import spoken

    length = "" if step.key.length is None else f"{step.key.length} words, "
    figures = [f"{what} {step.record[name]:,.1f} {unit}/s" for what, name, unit in _FIGURES if name in step.record]
    time_left = f"; about {spoken(step.seconds_left)} left" if step.seconds_left else ""
    where = f"[{step.number}/{step.of}] round {step.key.round}, {length}{step.key.engine}"
    return f"{where}: {', '.join(figures)} ({spoken(step.seconds)}){time_left}"


def _table(planned: Planned, measurements: Measurements) -> pd.DataFrame:
    """The table of all measurements so far, one length below the other."""
    import pandas as pd

    from analyses import efficiency
    from workbench.benchmark.rounds import rounds_so_far

    lengths = dict.fromkeys(key.length for key, _ in planned)
    rounds = [rounds_so_far(planned, measurements, length) for length in lengths]
    return pd.concat([efficiency.table(records) for records in rounds if records], ignore_index=True)


def _check(names: Sequence[str], precisions: Sequence[str], preset: str) -> None:
    """Refuse systems and settings that cannot be measured, before the first measurement."""
    from core_models.system_spec import describe
    from workbench.benchmark.workload import SHAPES

    if preset not in SHAPES:
        refuse(f"--preset {preset}: choose {' or '.join(SHAPES)}")
    for name in names:
        describe(name)
    for twice in (value for values in (names, precisions) for value in values if values.count(value) > 1):
        refuse(f"{twice} is named twice; name each once")
    for precision in precisions:
        if precision not in ("float32", "bfloat16", "int8"):
            refuse(f"--precision {precision}: choose float32, bfloat16 or int8")


def _print_record(name: str, steps: int, length: int | None, conditions: Conditions) -> None:
    from workbench.benchmark.speed import measure
    from workbench.benchmark.workload import Shape, of_length

    mixed = Shape(steps=steps)
    shape = mixed if length is None else of_length(mixed, length)
    say(json.dumps(measure(name, shape, conditions)))


def _lengths(text: str | None) -> list[int | None]:
    """The requested sentence lengths; [None] stands for the mix of lengths."""
    if text is None:
        return [None]
    return list(whole_numbers(text, "--lengths"))


def _in_preset(name: str, preset: str) -> str:
    """A system's description, with the preset added unless it names one."""
    return name if "preset=" in name else f"{name}{',' if ':' in name else ':'}preset={preset}"


@benchmark_app.command("profile")
def benchmark_profile(
    system: Annotated[str, typer.Argument(help="System of the catalogue")] = "transformer",
    precision: Annotated[str, typer.Option(help="Precision: float32 or bfloat16")] = "float32",
    device: Device = "cpu",
    threads: Threads = 0,
) -> None:
    """Profile the operators of training steps and of beam search, on the shape of `workbench benchmark speed`."""
    import pandas as pd

    from core_models.devices import usable
    from workbench.benchmark.profiling import profile
    from workbench.benchmark.workload import Shape

    device = usable(device)
    _check_precision(precision)
    few = Shape(steps=4, warmup=1, sentences=40, repeats=1)
    profiled = profile(_in_preset(system, "small"), few, precision, device, threads)
    print_table(pd.DataFrame(profiled.operators))
    if profiled.recurrence:
        say(f"recurrence, forward and backward: {100 * profiled.recurrence:.0f} % of training")


@benchmark_app.command("launches")
def benchmark_launches(
    systems: Annotated[list[str] | None, typer.Argument(help="Systems of the catalogue")] = None,
    precision: Annotated[str, typer.Option(help="Precision: float32 or bfloat16")] = "float32",
) -> None:
    """Count the operators of a training step and of a beam-search step; on a GPU each launches at least one kernel.

    Counted on a CPU, with a few sentences; casts are part of forward and backward.
    """
    import pandas as pd

    from workbench.benchmark.launches import count_launches

    _check_precision(precision)
    names = [_in_preset(system, "small") for system in systems or ["transformer"]]
    print_table(pd.DataFrame([{"system": name, **count_launches(name, precision)} for name in names]))


def _check_precision(precision: str) -> None:
    if precision not in ("float32", "bfloat16"):
        refuse(f"--precision {precision}: choose float32 or bfloat16")


@benchmark_app.command("end-to-end")
def benchmark_end_to_end(
    run: RunPath,
    test: Annotated[str, typer.Option(help="Name of a test set of the run's prepared data")],
    threads: Threads = 1,
    quantization: Annotated[
        list[str] | None, typer.Option(help="Quantization of CTranslate2; may be repeated  [default: float32, int8]")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Number of rounds; the table has their medians", min=1)] = 3,
    csv: Annotated[Path | None, typer.Option(help="File to write the table to as well")] = None,
) -> None:
    """Translate a test set with a trained Transformer and with the same weights in CTranslate2: time and BLEU."""
    import pandas as pd

    from core_models.files.atomic_files import write_atomic
    from workbench.benchmark.end_to_end import measure_trained
    from workbench.store.csv_cells import csv_text
    from workbench.store.runs import open_run

    need_folder(csv, "--csv")
    records = measure_trained(open_run(run), test, threads, tuple(quantization or ("float32", "int8")), rounds)
    if csv is not None:
        write_atomic(csv, csv_text(pd.DataFrame(records)))
    print_table(pd.DataFrame(records))
