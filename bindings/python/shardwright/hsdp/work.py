# SPDX-License-Identifier: Apache-2.0
"""Work: an operation that is under way."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._library import native
from .._options import nanoseconds


class Work:
    """An operation of a communicator or of a unit. Used by one thread at a time. What it reads and writes is kept alive by it."""

    def __init__(self, handle: Any, kept: Any = None, settle: Callable[[], None] | None = None) -> None:
        """settle: as for Hsdp."""
        self._handle: Any = handle
        self._kept = kept
        self._settle = settle

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the operation has ended; False after `timeout` seconds (None = no limit but its own). Its failure, again
        at each further call: AbortedError, DeadlineExceededError, UnavailableError. Signals end the wait."""
        return self._ends_within(-1 if timeout is None else nanoseconds("timeout", timeout))

    def done(self) -> bool:
        """Whether it has ended; waits for no other rank, but as `settle` of Hsdp does. Failures as wait."""
        return self._ends_within(0)

    def _ends_within(self, limit_ns: int) -> bool:
        if self._settle is not None:
            self._settle()
        ended: bool = native.shw_py_work_wait(self._handle, limit_ns)
        return ended

    def close(self) -> None:
        """Gives the operation up, or forgets one that has ended: where other ranks still need this one, the communicator has
        failed. Twice is fine."""
        native.shw_py_close(self._handle)
