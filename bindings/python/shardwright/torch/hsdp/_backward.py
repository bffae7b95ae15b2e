# SPDX-License-Identifier: Apache-2.0
"""How one backward ends. The engine of torch calls what was queued for its end, and only drops it where the backward raised: so
this is how a rank learns that it has failed, in whatever code that was."""
from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Backward:
    """Queued once for one backward; nothing else may keep it.

    Args:
        at_end: is called at its end.
        abort: is called with a message where it raised, or `at_end` did.
        engine: the frame that called the engine, where what it raised arrives; None = it is not called from Python.
    """

    def __init__(self, at_end: Callable[[], None], abort: Callable[[str], None], engine: FrameType | None) -> None:
        self._at_end, self._abort, self._engine = at_end, abort, engine
        self._thread = threading.get_ident()
        self._has_ended = False

    def __call__(self) -> None:
        self._at_end()
        self._has_ended = True

    def __del__(self) -> None:
        if self._has_ended:
            return
        if self._engine is None or threading.get_ident() != self._thread or not _is_running(self._engine):
            self._abort("backward raised an error")
        else:
            _Arrival(self._abort, self._engine)


def _is_running(frame: FrameType) -> bool:
    """Whether a frame is one of those that the caller will return to."""
    each = sys._getframe(1).f_back
    while each is not None and each is not frame:
        each = each.f_back
    return each is frame


class _Arrival:
    """Sees the next exception in a frame of this thread, and what traced the thread before goes on. Until then the engine has the
    exception in C++, out of sight."""

    def __init__(self, abort: Callable[[str], None], frame: FrameType) -> None:
        self._abort = abort
        self._before = sys.gettrace(), frame.f_trace
        frame.f_trace = self._see
        sys.settrace(lambda *_: None)  # frames that begin meanwhile are not looked at

    def _see(self, frame: FrameType, event: str, found: Any) -> Any:
        if event not in ("exception", "return"):
            return self._see
        tracing, frame.f_trace = self._before
        sys.settrace(tracing)
        self._abort("backward raised " + (f"{found[0].__name__}: {found[1]}" if event == "exception" else "an error"))
        return frame.f_trace
