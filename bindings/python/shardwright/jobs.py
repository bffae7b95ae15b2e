# SPDX-License-Identifier: Apache-2.0
"""Jobs: saves and loads in the background. A job holds the memory that it reads or fills until it needs it no more, also
when the caller drops the job; dropping neither waits nor cancels. When it has ended it lets go by itself.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any

from . import _log
from ._library import native
from ._options import nanoseconds
from ._progress import INTERVAL_SECONDS, STATES, Display, Listener, Progress, progress_of
from .context import call_when_ended, forget, keep_until_done
from .errors import DeadlineExceededError
from .report import Report

_FIRST_TERMINAL = 3
_STAGED = 2


class Job:
    """A save or load in the background; made by save_async and load_async. `await job` gives what result() gives, while the
    event loop goes on; an await that is cancelled leaves the job running."""

    def __init__(self, handle: Any, keep: Any, finish: Callable[[Report], None] | None, save: bool) -> None:
        self._handle: Any = handle
        self._keep = keep
        self._finish = finish
        self._save = save
        self._report: Report | None = None
        keep_until_done(self)

    def let_go(self) -> None:
        """Called once the job has ended: a save needs nothing any more, a load what its report puts into the target."""
        if self._save:
            self._keep = None

    def poll(self) -> str:
        """State: "queued", "running", "staged" (a save no longer reads the caller's tensors), "succeeded", "failed" or
        "cancelled"; the last three are final."""
        state = native.shw_job_poll(self._handle)
        if state >= _STAGED:
            self.let_go()
        return STATES[state]

    def ended(self) -> bool:
        """True when the memory that the job was given is no longer used."""
        return bool(native.shw_job_poll(self._handle) >= _FIRST_TERMINAL)

    def done(self) -> bool:
        """True when the job has ended, in whatever way. A save that succeeded is durable."""
        return self.ended()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the job has ended: True when it succeeded, False when `timeout` seconds (None = no limit) passed;
        raises what the job failed with. Ctrl-C cancels the job."""
        return self._wait(timeout, False)

    def wait_staged(self, timeout: float | None = None) -> bool:
        """Waits until a save no longer reads the caller's tensors, which may then change. Otherwise as wait."""
        done = self._wait(timeout, True)
        self.poll()
        return done

    def _wait(self, timeout: float | None, staged: bool) -> bool:
        limit = -1 if timeout is None else 0 if timeout <= 0 else nanoseconds("timeout", timeout)
        try:
            return bool(native.shw_py_job_wait(self._handle, limit, staged))
        finally:
            _log.drain()
            if self.ended():
                forget(self)

    def result(self, timeout: float | None = None) -> Report:
        """The report, waiting for it. DeadlineExceededError (a TimeoutError) when `timeout` seconds passed."""
        if not self.wait(timeout):
            raise DeadlineExceededError(f"the job has not ended within {timeout} s; it is {self.poll()}")
        return self.report()

    def report(self) -> Report:
        """The report of a job that succeeded; FailedPreconditionError before that. The first call after a load puts
        values that are no tensors into the target."""
        if self._report is None:
            report = Report(native.shw_job_report(self._handle))
            if self._finish is not None:
                self._finish(report)
            self._report, self._keep, self._finish = report, None, None
        return self._report

    def __await__(self) -> Generator[Any, None, Report]:
        import asyncio
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not ended.done():
                ended.set_result(None)

        call_when_ended(self, lambda: loop.call_soon_threadsafe(wake))
        yield from ended
        return self.result()

    def progress(self) -> Progress:
        """A snapshot of how far the job is."""
        return progress_of(self._handle)

    def watch(self, progress: Listener, interval: float = INTERVAL_SECONDS) -> Report:
        """Waits for the job and meanwhile tells `progress` (as for save) how far it is, at most every 0.1 s, and once at the
        end. What it raises comes out; the job goes on."""
        display = Display(progress)
        interval = max(interval, INTERVAL_SECONDS)
        last = float("-inf")
        try:
            while not self.wait(interval):
                if time.monotonic() - last >= interval:
                    last = time.monotonic()
                    display.show(self.progress())
            display.show(self.progress())
        finally:
            display.close()
        return self.report()

    def tell(self, display: Display) -> None:
        """Tells a display from a thread of its own until the job has ended. What it raises is logged, and ends the telling."""
        ended = threading.Event()
        call_when_ended(self, ended.set)

        def follow() -> None:
            try:
                while not ended.wait(INTERVAL_SECONDS):
                    display.show(self.progress())
                display.show(self.progress())
            except Exception:  # noqa: BLE001 - there is no caller that it could reach
                _log.logger.exception("progress of a job is told no more: its listener failed")
            finally:
                display.close()

        threading.Thread(target=follow, name="shardwright-progress", daemon=True).start()

    def cancel(self) -> None:
        """Asks the job to stop and returns at once. After its commit point a save still succeeds."""
        native.shw_job_cancel(self._handle)

    def close(self) -> None:
        """Nothing to do: a job is released when it has ended and nobody holds it. There for `with`."""

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.cancel()

    def __repr__(self) -> str:
        return f"shardwright.Job({self.poll()})"

    def __reduce__(self) -> Any:
        raise TypeError("a Job runs in this process and is not pickled; pickle job.report().to_dict()")
