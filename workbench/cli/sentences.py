"""Errors of the system (disk, memory, locks) as one sentence for the user.

Recognizes errors by name or message, so that no library is imported for --help.
"""

from __future__ import annotations

import errno

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Messages of libraries in a RuntimeError or an ImportError for lack of memory.
_NO_MEMORY = (
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "out of memory",
    "bad_alloc",
    "failed to map segment",
    "unable to mmap",
    "can't start new thread",
)


def of_the_system(error: BaseException) -> str | None:
    """The message for a system error, or for one in its chain of causes; None for other errors."""
    seen: BaseException | None = error
    while seen is not None:
        message = _message(seen)
        if message is not None and (seen is error or _of_memory(seen) or getattr(seen, "errno", None) in _FULL):
            return message
        seen = seen.__cause__ or seen.__context__
    return None


def _message(error: BaseException) -> str | None:
    if _of_memory(error):
        text = " ".join(str(error).split())[:300]
        return (
            f"not enough memory{f' ({text})' if text else ''}: nothing half-written is left; close other programs, or "
            "let it work on less at a time, such as by a smaller batch_tokens"
        )
    if isinstance(error, TimeoutError) and hasattr(error, "lock_file"):  # of filelock
        return f"{error.lock_file}: another process holds this lock; wait until it has ended"
    if isinstance(error, OSError):
        return _of_files(error)
    return None


def _of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return isinstance(error, RuntimeError | ImportError) and any(phrase in str(error).lower() for phrase in _NO_MEMORY)


def _of_files(error: OSError) -> str:
    why = (error.strerror or str(error) or type(error).__name__).lower()
    where = error.filename or "a file"
    if error.errno in _FULL:
        return f"{where}: {why}; nothing half-written is left: make room on the disk, then give the command again"
    return f"{where}: {why}; check the path, its permissions and the disk"
