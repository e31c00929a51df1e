"""A training beside other processes takes the processors that are left; where a number was chosen, it stays."""

import json
import os
import subprocess
import sys
import time

import pytest

from core_models.resources import processors
from core_models.training.threads import threads_for

BUSY = "import time; until = time.time() + 20\nwhile time.time() < until: pass"
# Prints PyTorch's threads before and after a line comes in, and once restored, and whether those of a GPU or of several
# processes would be adapted.
ADAPTING = """
import json, sys, torch
from core_models.training.threads import ThreadsByLoad
threads, counts = ThreadsByLoad(torch.device("cpu")), [torch.get_num_threads()]
others = [ThreadsByLoad(torch.device("cuda")).adapts, ThreadsByLoad(torch.device("cpu"), 2).adapts]
print("begun", flush=True)
sys.stdin.readline()
threads.adapt()
counts.append(torch.get_num_threads())
threads.restore()
print(json.dumps([*counts, torch.get_num_threads(), *others]))
"""


@pytest.mark.parametrize(
    ("others", "threads"), [(0, 8), (0.4, 8), (0.6, 7), (1, 7), (3.2, 5), (7.9, 1), (8, 1), (30, 1)]
)
def test_as_many_threads_as_processors_are_left(others, threads):
    assert threads_for(8, others) == threads


def adapted_beside_busy_processes(**chosen: str) -> list[int]:
    """What ADAPTING prints beside as many processes that are always busy as there are processors."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"} | chosen
    command = [sys.executable, "-c", ADAPTING]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as adapting:
        assert adapting.stdout.readline() == "begun\n"
        others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processors())]
        try:
            time.sleep(1.5)
            return json.loads(adapting.communicate("go on\n", timeout=60)[0])
        finally:
            for other in others:
                other.kill()
                other.wait()


@pytest.mark.skipif(processors() < 2, reason="one processor has one thread")
@pytest.mark.slow
def test_busy_processes_take_their_processors_from_a_training_alone_on_a_cpu():
    assert adapted_beside_busy_processes() == [processors(), 1, processors(), False, False]


@pytest.mark.slow
def test_a_chosen_number_of_threads_stays():
    assert adapted_beside_busy_processes(OMP_NUM_THREADS="2")[:2] == [2, 2]
