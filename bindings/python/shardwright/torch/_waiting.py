# SPDX-License-Identifier: Apache-2.0
"""Calls that wait in C for other ranks, on a thread, so that the caller's own may be interrupted."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

_SLICE_SECONDS = 0.2


def interruptible(wait: Callable[[], Any], give_up: Callable[[], None] | None = None) -> Any:
    """What `wait()` returns or raises. An exception of a signal handler (Ctrl-C) comes out at once; `give_up` then ends the
    waiting, else it goes on by itself until its limit."""
    waiting = _Waiting(wait)
    try:
        while waiting.is_alive():
            waiting.join(_SLICE_SECONDS)
    except BaseException:
        if give_up is not None:
            give_up()
        raise
    return waiting.result()


class _Waiting(threading.Thread):
    def __init__(self, wait: Callable[[], Any]) -> None:
        super().__init__(name="shardwright-waiting", daemon=True)
        self._wait = wait
        self._found: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._found = self._wait()
        except BaseException as e:
            self._error = e

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._found
