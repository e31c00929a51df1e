"""Trainings in processes of their own, forked from one warm server, and what may befall them there.

A fault is put into the child alone, by wrapping functions of public modules: what is trained knows nothing of it.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from core_models import checkpoint
from core_models.checkpoint import write_weights
from core_models.layers import positional_embedding
from core_models.text.batch_loader import BatchLoader
from core_models.training import loop, validation
from core_models.training.fit import fit
from core_models.training.log import TrainingLog
from core_models.training.loop import Loop, TrainingError
from core_models.training.loss_module import Objective
from core_models.training.reinforce import Reward, SelfCriticalSampler
from core_models.translator import Translator
from tests.fake_cuda import CUDA, FakeCuda

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["core_models.training.fit", "torch._dynamo"])  # the optimiser imports the second


@dataclass(frozen=True)
class Moment:
    """When a process kills itself: while update number `step`, or what is due after it, is under way, at a place.

    place: "call" (`call` Python functions into the step), "accumulation" (half done), "validation" (one batch in),
    "log" (half a line), "replace" or "replaced" (before or after the rename that makes a state), or the folder or file
    that is then half-written, or linked to what is written already. behind: how many steps later something is logged
    before optimizer.pt is half-written.
    """

    step: int
    place: str = "call"
    call: int = 1
    behind: int = 0


class Rank:
    """One training under way in a process."""

    def __init__(
        self,
        run: Path,
        fault: Any = None,
        rank: int = 0,
        world: int = 1,
        port: int = 0,
        reward: Reward | None = None,
        gpu: bool = False,
    ) -> None:
        self._process = SERVER.Process(target=_train, args=(run, fault, rank, world, port, reward, gpu))
        self._process.start()

    def ended(self, seconds: float = 250) -> int:
        """The exit code; a signal's is negative."""
        self._process.join(seconds)
        if self._process.exitcode is None:
            self.kill()
            raise AssertionError(f"still running after {seconds} seconds")
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def train(run: Path, fault: Any = None, reward: Reward | None = None, gpu: bool = False) -> int:
    """Train a run in one process, gpu: on a pretended one; returns its exit code."""
    return Rank(run, fault, reward=reward, gpu=gpu).ended()


def start_ranks(run: Path, faults: tuple[Any, Any] = (None, None), reward: Reward | None = None) -> list[Rank]:
    """Two processes that train one run together, as a launcher starts them."""
    port = free_port()
    return [Rank(run, fault, rank, 2, port, reward) for rank, fault in enumerate(faults)]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _train(run: Path, fault: Any, rank: int, world: int, port: int, reward: Reward | None, gpu: bool) -> None:
    torch.set_num_threads(1)
    if world > 1:
        ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world, "MASTER_PORT": port}
        places = {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1"}
        os.environ.update({name: str(value) for name, value in ranks.items()} | places)
    if isinstance(fault, Moment):
        _Fuse(fault).lay()
    elif fault is not None:
        fault()
    if gpu:
        os.environ["ACCELERATE_TORCH_DEVICE"] = str(CUDA)
    try:
        with FakeCuda() if gpu else nullcontext():
            fit(run, device="cuda" if gpu else "cpu", reward=reward)
    except TrainingError as error:
        (run / f"error-{rank}.txt").write_text(str(error), encoding="utf-8")
        sys.exit(3)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class _Fuse:
    """Kills its process at a moment."""

    def __init__(self, moment: Moment) -> None:
        self.moment, self.armed, self.calls, self.batches = moment, False, 0, 0
        self.logged = threading.Event()  # of a step that is `behind` the moment's

    def lay(self) -> None:
        step = Loop.step

        def watched(own: Loop, group: list) -> Any:
            if own.progress.step + 1 == self.moment.step:
                self.armed = True
                if self.moment.place == "call":
                    sys.setprofile(self._count)
            return step(own, group)

        Loop.step = watched
        if self.moment.place != "call":
            {
                "accumulation": self._in_accumulation,
                "validation": self._in_validation,
                "log": self._in_log,
                "replace": self._in_replace,
                "replaced": self._in_replace,
            }.get(self.moment.place, self._in_file)()

    def _count(self, frame: Any, event: str, argument: Any) -> None:
        self.calls += event == "call"
        if self.calls == self.moment.call:
            _die()

    def _in_accumulation(self) -> None:
        forward = Objective.forward

        def dying(own: Objective, batch: Any) -> Any:
            self.batches += self.armed
            if self.batches == 2:
                _die()
            return forward(own, batch)

        Objective.forward = dying

    def _in_validation(self) -> None:
        fuse = self

        class Dying(validation.BatchLoader):
            def batch(self, epoch: int, number: int) -> Any:
                if number == 1 and fuse.armed:
                    _die()
                return super().batch(epoch, number)

        validation.BatchLoader = Dying  # it makes only that of the dev text

    def _in_log(self) -> None:
        write = TrainingLog.write

        def dying(own: TrainingLog, event: str, step: int, **values: Any) -> None:
            if not self.armed:
                return write(own, event, step, **values)
            with own.path.open("a") as file:
                file.write(json.dumps({"event": event, "step": step})[:-5])
            _die()

        TrainingLog.write = dying

    def _in_replace(self) -> None:
        replace = os.replace

        def dying(old: Path, new: Path) -> None:
            state = self.armed and Path(new).parent.name == "state" and Path(new).suffix == ""
            if state and self.moment.place == "replace":
                _die()
            replace(old, new)
            if state:
                _die()

        os.replace = dying

    def _in_file(self) -> None:
        save_file, save, link = checkpoint.save_file, torch.save, os.link

        def is_place(path: Path) -> bool:
            return self.armed and self.moment.place in (path.parent.name, path.name, path.name.removesuffix(".part"))

        def cut(path: Path) -> None:
            if is_place(path):
                os.truncate(path, path.stat().st_size // 2)
                _die()

        def dying_link(old: Path, new: Path) -> None:
            link(old, new)
            if is_place(new):
                _die()

        def dying_weights(tensors: Any, path: Path, **options: Any) -> None:
            save_file(tensors, path, **options)
            cut(path)

        def dying_optimizer(content: Any, file: Any) -> None:
            save(content, file)
            file.flush()
            if self.armed and self.moment.behind:
                assert self.logged.wait(100), "training does not go on while a state is written"
            cut(Path(file.name))

        write = TrainingLog.write

        def watched_log(own: TrainingLog, event: str, step: int, **values: Any) -> None:
            write(own, event, step, **values)
            if step >= self.moment.step + self.moment.behind:
                self.logged.set()

        TrainingLog.write = watched_log
        checkpoint.save_file, torch.save, os.link = dying_weights, dying_optimizer, dying_link


@dataclass(frozen=True)
class CountCalls:
    """No fault: leaves beside the run how many Python functions each step calls, what is due after it included."""

    path: Path

    def __call__(self) -> None:
        step, counts = Loop.step, []

        def count(frame: Any, event: str, argument: Any) -> None:
            counts[-1] += event == "call"

        def counted(own: Loop, group: list) -> Any:
            counts.append(0)
            self.path.write_text(json.dumps(counts))
            sys.setprofile(count)
            return step(own, group)

        Loop.step = counted


@dataclass(frozen=True)
class ShortTables:
    """No fault: tables of positions so short that each process's sentences make its own grow, by other lengths."""

    def __call__(self) -> None:
        positional_embedding.FIRST_POSITIONS = 4


@dataclass(frozen=True)
class RoomFor:
    """No fault: a device with room for batches of so many padded words."""

    words: float

    def __call__(self) -> None:
        loop.limit_of_memory = lambda *_: (self.words, "" if math.isinf(self.words) else "no room")


@dataclass(frozen=True)
class DrawsByBatch:
    """No fault: what is drawn of a batch depends on its sentences alone, not on who draws, or what was drawn before."""

    def __call__(self) -> None:
        draw = SelfCriticalSampler.draw

        def seeded(own: SelfCriticalSampler, batch: Any) -> Any:
            torch.manual_seed(int(batch.indices.sum()))
            return draw(own, batch)

        SelfCriticalSampler.draw = seeded


@dataclass(frozen=True)
class BrokenLosses:
    """Spoils the losses of this process at some steps; leaves its weights, and its optimiser's tensors before and
    after each step, beside the run. how: "gradient" spoils loss and gradient, "loss" the loss alone."""

    name: str
    steps: tuple[tuple[int, str], ...] = ()

    def __call__(self) -> None:
        step, forward, run = Loop.step, Objective.forward, Loop.run
        at, changed, how = dict(self.steps), {}, [""]

        def tensors(own: Loop) -> list[torch.Tensor]:
            moments = [own.optimizer.state[p] for p in own.system.parameters() if p in own.optimizer.state]
            return [
                value.clone() for value in [*own.system.parameters(), *(v for state in moments for v in state.values())]
            ]

        def watched(own: Loop, group: list) -> Any:
            number = own.progress.step + 1
            how[0], before = at.get(number, ""), tensors(own)
            update = step(own, group)
            after = tensors(own)
            changed[number] = len(before) != len(after) or not all(map(torch.equal, before, after))
            return update

        def spoilt(own: Objective, batch: Any) -> dict[str, torch.Tensor]:
            terms = forward(own, batch)
            spoil: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
                "": lambda term: term,
                "gradient": lambda term: term * float("nan"),
                "loss": lambda term: term + float("inf"),  # its derivative is 1
            }
            return terms | {"main": spoil[how[0]](terms["main"])}

        def recorded(own: Loop, minutes: float | None) -> Any:
            try:
                return run(own, minutes)
            finally:
                write_weights(own.folder / f"{self.name}.safetensors", own.system)
                (own.folder / f"{self.name}.json").write_text(json.dumps(changed))

        Loop.step, Objective.forward, Loop.run = watched, spoilt, recorded


@dataclass(frozen=True)
class DevShares:
    """Spoils the loss of every step, so that the weights stay the first; leaves which batches of dev this process
    computed, and which sentences it translated, beside the run."""

    name: str

    def __call__(self) -> None:
        forward, batch, translate_rows = Objective.forward, BatchLoader.batch, Translator.translate_rows
        validate = Loop.validate
        did: dict[str, list[int]] = {"batches": [], "rows": []}

        def spoilt(own: Objective, *given: Any) -> dict[str, torch.Tensor]:
            return {name: term * float("nan") for name, term in forward(own, *given).items()}

        def counted_batch(own: BatchLoader, epoch: int, number: int) -> Any:
            did["batches"].append(number)
            return batch(own, epoch, number)

        def counted_rows(own: Translator, rows: list[int], *given: Any) -> Any:
            did["rows"] += rows
            return translate_rows(own, rows, *given)

        def recorded(own: Loop) -> dict[str, float]:
            values = validate(own)
            (own.folder / f"{self.name}.json").write_text(json.dumps(did))
            return values

        Objective.forward, BatchLoader.batch, Translator.translate_rows = spoilt, counted_batch, counted_rows
        Loop.validate = recorded
