"""A server that nobody looks at gives its memory back, and none while somebody looks."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from workbench import idle_memory
from workbench.idle_memory import IdleMemory, give_back


@pytest.fixture
def given(monkeypatch) -> list[float]:
    """When memory was given back, which the real function does too."""
    times: list[float] = []

    def noted() -> None:
        times.append(asyncio.get_running_loop().time())
        give_back()

    monkeypatch.setattr(idle_memory, "give_back", noted)
    return times


def run(visits: Callable[[IdleMemory], Awaitable[None]]) -> None:
    asyncio.run(visits(IdleMemory(seconds=0.05)))


def test_it_waits_for_the_last_browser_to_go(given):
    async def visits(memory: IdleMemory) -> None:
        with memory:
            with memory:
                pass
            await asyncio.sleep(0.15)
            assert given == []
        await asyncio.sleep(0.15)
        assert len(given) == 1

    run(visits)


def test_a_browser_that_comes_back_in_time_finds_everything(given):
    async def visits(memory: IdleMemory) -> None:
        with memory:
            pass
        with memory:
            await asyncio.sleep(0.15)
        assert given == []
        await asyncio.sleep(0.15)
        assert len(given) == 1

    run(visits)
