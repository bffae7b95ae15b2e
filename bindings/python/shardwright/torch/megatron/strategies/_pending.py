# SPDX-License-Identifier: Apache-2.0
"""A save of the library that is under way, as the function of an AsyncRequest: it waits until the save has ended.

Megatron's own queues call that function in a process that they fork or spawn, where the job does not exist. There it waits for
a lock on a file that this process holds until the end: the kernel releases it whatever becomes of this process, and the death
of the one that waits harms nobody.
"""
from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable
from typing import Any

from ....context import call_when_ended
from ....jobs import Job

_here: dict[str, Pending] = {}


class Pending:
    """A save under way: a Job, or a future of one that goes step by step."""

    def __init__(self, job: Any) -> None:
        self._job = job
        # A lock of a process is not inherited by those that it forks, other than one of an open file.
        self._lock, self.path = tempfile.mkstemp(prefix="shardwright-save-")
        fcntl.lockf(self._lock, fcntl.LOCK_EX)
        _here[self.path] = self
        _when_ended(job, self._end)

    def _end(self) -> None:
        _here.pop(self.path, None)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        os.close(self._lock)

    @property
    def arguments(self) -> tuple[str, int]:
        """What wait_until_ended takes; they can be sent to another process of this machine."""
        return self.path, os.getpid()

    def wait(self) -> None:
        """Returns when the save has ended, in whatever way."""
        with contextlib.suppress(Exception):  # which `result` raises
            self.result()

    def result(self) -> Any:
        """The report or metadata; raises what the save failed with."""
        return self._job.result()


def _when_ended(job: Any, then: Callable[[], None]) -> None:
    if isinstance(job, Job):
        call_when_ended(job, then)
    else:
        job.add_done_callback(lambda _: then())


def wait_until_ended(path: str, process: int) -> None:
    """Returns when the save has ended that process `process` began, or when that process has."""
    if process == os.getpid():
        pending = _here.get(path)
        if pending is not None:
            pending.wait()
        return
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        fcntl.lockf(file, fcntl.LOCK_SH)
