"""Out of memory, for real: allocations that no machine can serve, and a process whose address space is bounded."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from core_models import load
from core_models.decoding.memory_batching import Capacity, TooLarge, batches
from tests.paths import ROOT

CUDA = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"))
LENGTHS = [3, 9, 5, 5, 9, 1, 2, 9]


def _fits(most: int, device: str, seen: list[list[int]]):
    """Work that needs more memory than there is for more than `most` sentences."""

    def work(rows: list[int]) -> list[int]:
        seen.append(rows)
        torch.empty(1 << 50 if len(rows) > most else 1, device=device)
        return [10 * row for row in rows]

    return work


def test_a_plan_holds_every_row_once_longest_first_within_the_budget():
    planned = batches(LENGTHS, budget=40, width=2)
    assert planned == [[1, 4], [7, 2], [3, 0, 6, 5]]
    assert all(2 * len(rows) * LENGTHS[rows[0]] <= 40 for rows in planned)
    assert batches(LENGTHS, budget=1, width=2) == [[row] for row in (1, 4, 7, 2, 3, 0, 6, 5)]
    assert batches([], budget=40, width=2) == []


def _sizes(seen: list[list[int]]) -> list[int]:
    return [len(rows) for rows in seen]


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_batches_are_halved_until_they_fit_and_later_ones_begin_there(device, caplog):
    capacity, seen, later, other = Capacity(), [], [], []
    with caplog.at_level(logging.WARNING):
        done = list(capacity.run("counting", [4] * 9, 100, 1, _fits(2, device, seen)))
    assert _sizes(seen) == [9, 4, 2, 2, 2, 2, 1]
    assert [row for rows, _ in done for row in rows] == list(range(9))
    assert all(result == [10 * row for row in rows] for rows, result in done)
    (record,) = caplog.records
    assert "out of memory while counting 9 sentences of up to 4 pieces: going on with 4" in record.getMessage()

    list(capacity.run("counting", [4] * 4, 100, 1, _fits(9, device, later)))
    list(capacity.run("something else", [4] * 4, 100, 1, _fits(9, device, other)))
    assert (_sizes(later), _sizes(other)) == ([2, 2], [4])


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_one_sentence_that_does_not_fit_is_named(device):
    seen: list[list[int]] = []
    with pytest.raises(TooLarge, match=r"(?i)tried to allocate") as stopped:
        list(Capacity().run("counting", LENGTHS, 100, 1, _fits(0, device, seen)))
    assert stopped.value.row == 1
    assert _sizes(seen) == [8, 4, 2, 1]


def test_other_errors_are_not_held_for_a_lack_of_memory():
    def work(rows: list[int]) -> None:
        torch.ones(2) @ torch.ones(3)

    with pytest.raises(RuntimeError, match=r"size mismatch|inconsistent tensor size"):
        list(Capacity().run("counting", LENGTHS, 100, 1, work))


# The address space is bounded to what is in use and a few megabytes more, once everything has been loaded.
PROGRAM = """
import json, resource, sys
import torch
from core_models import load
from core_models.translator import TranslatorError

torch.set_num_threads(1)

def bound(megabytes):
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (megabytes << 20), -1))

translator = load(sys.argv[1])
sources = json.loads(sys.argv[2])
translator.translate(sources[:20])
bound(80)
found = translator.translate(sources, batch_tokens=10**9)
bound(40)
try:
    translator.translate(sources[:1], beam=4000)
except TranslatorError as error:
    print(json.dumps([[one.text, one.score] for one in found] + [str(error)]))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="this system does not bound the address space")
@pytest.mark.slow
def test_a_batch_that_truly_does_not_fit_is_translated_in_parts_as_small_batches_are(trained_run, prepared):
    sources = [source for source in prepared.test("test").sources for _ in range(60)]
    # The allocator's settings of `make` keep room that no bound takes away.
    others = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(trained_run), json.dumps(sources)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        env={**others, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    *found, refusal = json.loads(done.stdout)
    small = load(trained_run).translate(sources)
    assert [text for text, _ in found] == [one.text for one in small]
    assert [score for _, score in found] == pytest.approx([one.score for one in small], abs=1e-4)
    told = [line for line in done.stderr.splitlines() if "out of memory" in line]
    assert len(told) == 1, done.stderr
    assert f"out of memory while translating {len(sources)} sentences of up to" in told[0]
    assert "out of memory while translating one sentence alone, of" in refusal
    assert "with beam 4000" in refusal
    assert "split the sentence, take a smaller beam or max_length, or a device with more memory" in refusal
