"""Memory goes back to the system once nobody looks at the app any more.

Python and the C library keep what was freed for the next time: after twenty sessions a server that shows nothing to
anybody still holds several times what it began with. Knows ASGI connections, no page.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from contextlib import suppress

# Streamlit keeps the session of a browser that has gone for two minutes, in case it comes back.
SECONDS_AFTER_THE_LAST = 150.0


class IdleMemory:
    """Counts browsers that are connected; a while after the last has gone, memory is given back."""

    def __init__(self, seconds: float = SECONDS_AFTER_THE_LAST) -> None:
        self._seconds = seconds
        self._connected = 0
        self._waiting: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._connected += 1
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def __exit__(self, *error: object) -> None:
        self._connected -= 1
        if not self._connected:
            self._waiting = asyncio.get_running_loop().call_later(self._seconds, give_back)


def give_back() -> None:
    """Free what nothing refers to any more, and return what is free to the system, where it says how (glibc)."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
