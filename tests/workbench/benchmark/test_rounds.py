"""A bench that is stopped keeps what was measured, and goes on there; what cannot be measured is a sentence."""

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from core_models.system_catalogue import catalogue
from core_models.system_spec import describe
from workbench import cli
from workbench.benchmark import rounds, time_estimate
from workbench.benchmark.measurements import Key, Measurements
from workbench.benchmark.rounds import Engine
from workbench.benchmark.workload import Conditions, Shape
from workbench.store.runs import RunError

pytestmark = pytest.mark.long

SETTINGS = {"device": "cpu", "steps": 12}
NAMES = ("a", "b", "c")


class Bench:
    """Three engines, of which one ends the process as Ctrl-C does after so many measurements."""

    def __init__(self, stop_after: int = 1000) -> None:
        self.left, self.done = stop_after, list[str]()
        self.engines = [Engine(name, partial(self._measure, name), 10.0) for name in NAMES]

    def _measure(self, name: str, length: int | None) -> dict[str, object]:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        self.done.append(name)
        return {"engine": name, "decode_sentences_per_second": float(len(self.done)), "length": length}


@pytest.mark.parametrize("stops", range(13))
def test_what_was_measured_before_a_stop_is_not_measured_again(tmp_path, stops):
    table, lengths = tmp_path / "speed.csv", (10, 20)
    first, second = Bench(stops), Bench()
    planned = rounds.plan(lengths, 2, first.engines)
    assert len(planned) == 12
    try:
        list(rounds.measured(planned, Measurements(table, SETTINGS)))
    except KeyboardInterrupt:
        assert stops < len(planned)
    found = Measurements(table, SETTINGS)
    assert sum(found.get(key) is not None for key, _ in planned) == len(first.done) == stops
    steps = list(rounds.measured(rounds.plan(lengths, 2, second.engines), found))
    assert [step.kept for step in steps] == [True] * stops + [False] * (len(planned) - stops)
    assert first.done + second.done == [*NAMES] * 4
    assert [step.key for step in steps] == [key for key, _ in planned]
    again = Measurements(table, SETTINGS)
    for length in lengths:
        whole = rounds.rounds_so_far(planned, again, length)
        assert [[record["engine"] for record in one] for one in whole] == [[*NAMES]] * 2


def test_a_table_of_what_there_is_has_whole_rounds_or_the_first_as_far_as_it_is(tmp_path):
    found, bench = Measurements(None, SETTINGS), Bench()
    planned = rounds.plan([None], 2, bench.engines)
    sizes = []
    for _ in rounds.measured(planned, found):
        sizes.append([len(one) for one in rounds.rounds_so_far(planned, found, None)])
    assert sizes == [[1], [2], [3], [3], [3], [3, 3]]


def test_what_is_left_is_as_long_as_the_same_took_before_and_else_in_proportion():
    found, planned = Measurements(None, SETTINGS), rounds.plan([None], 2, Bench().engines)
    assert rounds.seconds_left(planned, found) == 6 * 10
    found.add(Key(None, 1, "a"), {}, 30.0)  # three times what was guessed
    assert rounds.seconds_left(planned, found) == 2 * 30 + 2 * 30 + 30
    found.add(Key(None, 1, "b"), {}, 10.0)
    assert rounds.seconds_left(planned, found) == 30 + 10 + 2 * 20
    for key, _ in planned:
        found.add(key, {}, 1.0)
    assert rounds.seconds_left(planned, found) == 0


def test_every_system_is_guessed_and_more_work_takes_longer():
    for name in catalogue():
        assert time_estimate.seconds_of(name, 12, "float32", 1e11) > time_estimate.seconds_of(name, 1, "float32", 1e11)
        assert (
            time_estimate.seconds_of(name, 12, "float32", 1e10) > time_estimate.seconds_of(name, 12, "int8", 1e10) > 0
        )
    small, base = (describe(f"transformer:preset={preset}") for preset in ("small", "base"))
    assert time_estimate.guessed_seconds(base, Shape(), "float32", 1e10) > time_estimate.guessed_seconds(
        small, Shape(), "float32", 1e10
    )


def _kept(table: Path, **settings: object) -> Measurements:
    """Measurements of two systems in two rounds, as `workbench benchmark speed` keeps them here."""
    own = {"device": "cpu", "threads": 0, "steps": 12, "preset": "small", "decoding_only": False}
    own |= {"machine": time_estimate.machine("cpu")}
    found = Measurements(table, own | settings)
    for number in (1, 2):
        for place, name in enumerate(("transformer:preset=small", "rnnsearch:preset=small"), start=1):
            record = {"engine": name, "train_tokens_per_second": 100.0 / place + number, "train_multiply_adds": 1.0}
            found.add(Key(None, number, name), record, 5.0)
    return found


def _bench(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli.app, ["benchmark", "speed", *map(str, arguments)])
    error = done.exception
    said = f"workbench: {error}" if type(error).__name__ in cli.SENTENCES else done.stderr
    return (2 if type(error).__name__ in cli.SENTENCES else done.exit_code), done.stdout, said


@pytest.mark.long
def test_the_same_command_again_measures_nothing_and_writes_the_table(tmp_path):
    table = tmp_path / "speed.csv"
    _kept(table)
    code, printed, said = _bench("transformer", "rnnsearch", "--rounds", 2, "--csv", table)
    assert code == 0, said
    assert f"all 4 of 4 measurements are kept in {table}.measured.jsonl" in said
    rows = pd.read_csv(table).set_index("engine")
    assert rows["train_tokens_per_second"]["rnnsearch:preset=small"] == (51 + 52) / 2
    assert "rnnsearch:preset=small" in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--steps", 13), "was measured with steps 12, this is 13"),
        (("--preset", "base"), "was measured with preset small, this is base"),
        (("--threads", 3), "was measured with threads 0, this is 3"),
        (("--decoding-only",), "was measured with decoding_only False, this is True"),
    ],
)
def test_other_settings_are_refused_and_nothing_is_changed(tmp_path, options, message):
    table = tmp_path / "speed.csv"
    kept = _kept(table).path
    before = kept.read_bytes()
    code, _, said = _bench("transformer", "rnnsearch", "--rounds", 2, "--csv", table, *options)
    assert (code, message in said) == (2, True), said
    assert kept.read_bytes() == before
    assert not table.exists()


def _without_settings(kept: Path) -> None:
    kept.write_text("".join(kept.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")


def _change(line: Callable[[dict[str, object]], object]) -> Callable[[Path], None]:
    def change(kept: Path) -> None:
        first, second, *rest = kept.read_text(encoding="utf-8").splitlines()
        found = json.loads(second)
        line(found)
        kept.write_text("\n".join([first, json.dumps(found), *rest]), encoding="utf-8")

    return change


DAMAGES = {
    "no settings": _without_settings,
    "empty": lambda kept: kept.write_text("", encoding="utf-8"),
    "no JSON": lambda kept: kept.write_text("x", encoding="utf-8"),
    "a speed that is a text": _change(lambda line: line["record"].update(train_tokens_per_second="fast")),
    "a speed that is no number": _change(lambda line: line["record"].update(train_tokens_per_second=float("nan"))),
    "no record": _change(lambda line: line.update(record=[1])),
    "no seconds": _change(lambda line: line.pop("seconds")),
    "a round that is a list": _change(lambda line: line.update(round=[1])),
    "an engine of another name": _change(lambda line: line.update(engine="other")),
    "settings that are a list": lambda kept: kept.write_text('{"settings": [1]}\n', encoding="utf-8"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_measurements_are_refused_by_name(tmp_path, damage):
    table = tmp_path / "speed.csv"
    kept = _kept(table).path
    DAMAGES[damage](kept)
    code, _, said = _bench("transformer", "rnnsearch", "--rounds", 2, "--csv", table)
    assert code == 2, said
    assert str(kept) in said


def test_a_table_without_its_measurements_is_not_written_over(tmp_path):
    table = tmp_path / "speed.csv"
    table.write_text("engine\nmine\n", encoding="utf-8")
    code, _, said = _bench("transformer", "--csv", table)
    assert code == 2
    assert "is there, but not what it was measured from" in said
    assert table.read_text(encoding="utf-8") == "engine\nmine\n"


@pytest.mark.parametrize("names", [("transformer", "transformer"), ("transformer", "transformer:preset=small")])
def test_what_is_named_twice_is_refused_before_anything_is_measured(names):
    code, _, said = _bench(*names)
    assert (code, "is named twice" in said) == (2, True), said


def test_compiled_routing_is_refused_where_nothing_is_trained():
    code, _, said = _bench("transformer", "em-routing", "--compile-routing", "--decoding-only")
    assert (code, "--compile-routing is for training" in said) == (2, True), said


def test_other_engines_that_are_not_installed_are_a_sentence(tmp_path):
    with pytest.raises(RunError, match="cannot be started"):
        rounds.others(str(tmp_path / "none"), "small", Conditions(threads=1), 1.0)
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n', encoding="utf-8")  # without site-packages
    bare.chmod(0o755)
    with pytest.raises(RunError, match="has no torch and no transformers and no ctranslate2; install it there"):
        rounds.others(str(bare), "small", Conditions(threads=1), 1.0)
    code, _, said = _bench("transformer", "--peers", bare)
    assert code == 2
    assert re.fullmatch(r"workbench: --peers .*pip install torch transformers ctranslate2\n?", said), said
