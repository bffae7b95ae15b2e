# SPDX-License-Identifier: Apache-2.0
"""Calls that ranks make together. What goes wrong on a rank on its way to the library is told to the other ranks in place
of its part, so that they fail at once instead of waiting for it; the library does so itself from there on."""
from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from . import context
from ._library import native
from .collective import rank_of
from .errors import HOST_EXCEPTION, CancelledError, InvalidArgumentError, ResourceExhaustedError, ShardwrightError

SAVE, LOAD = 0, 1  # SHW_CALL_


def on_main_thread() -> bool:
    """Whether signals arrive here: then waiting is done in slices, so that Ctrl-C ends it."""
    return threading.current_thread() is threading.main_thread()


def _code_of(error: BaseException) -> int:
    if isinstance(error, ShardwrightError):
        return error.code
    if isinstance(error, MemoryError):
        return ResourceExhaustedError.code
    if isinstance(error, (TypeError, ValueError, LookupError, AttributeError)):
        return InvalidArgumentError.code
    return HOST_EXCEPTION if isinstance(error, Exception) else CancelledError.code


class OnTheWay:
    """Holds what is done before the call: what is raised inside is told to the other ranks and goes on.

    Args:
        call: SAVE or LOAD.
        collective, handle: the argument of the call, and its native handle; None = one rank.
        background: the call is a job, so it is told in its turn among the jobs and nobody waits for that.
    """

    def __init__(self, call: int, collective: Any, handle: Any, *, background: bool) -> None:
        self._call, self._collective, self._handle, self._background = call, collective, handle, background

    def __enter__(self) -> OnTheWay:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if error is None or self._handle is None:
            return
        try:
            self._tell(_code_of(error), f"{type(error).__name__}: {error}")
        except Exception:  # noqa: BLE001 - the error that led here is what counts; it goes on with its own cause
            return

    def _tell(self, code: int, message: str) -> None:
        if self._background:
            jobs = context.shared("jobs", rank_of(self._collective))
            native.shw_collective_decline_async(jobs._handle, self._handle, self._call, code, message)
        elif on_main_thread():
            job = native.shw_collective_decline_async(context.shared("calls")._handle, self._handle, self._call, code,
                                                      message)
            native.shw_py_job_wait(job, -1, False)
        else:
            native.shw_collective_decline(self._handle, self._call, code, message)
