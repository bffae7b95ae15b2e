# SPDX-License-Identifier: Apache-2.0
"""Contexts: worker threads, staging memory, log and plugins. Most programs never see one: calls make two on first use,
one for calls that wait and one for jobs, so that a call never queues behind a running save.

At exit jobs are given a moment, then cancelled; after that no callback enters Python. In a forked child the library
answers FAILED_PRECONDITION to everything and nothing of the parent is touched.
"""
from __future__ import annotations

import atexit
import json
import os
import threading
from typing import Any

from . import _log
from ._library import native
from ._options import nanoseconds, number

_EXIT_SECONDS = 10.0


class Context:
    """Threads, memory and plugins that calls share.

    Args:
        threads: worker threads; 0 = min(cores, 8).
        memory_budget: bytes of staging memory; 0 = 256 MiB.
        plugin_path: directories, separated by colons, that are searched for plugins first.
    """

    def __init__(self, *, threads: int = 0, memory_budget: int = 0, plugin_path: str | None = None) -> None:
        self._handle: Any = native.shw_py_context_create(number("threads", threads, 2**31 - 1),
                                                         number("memory_budget", memory_budget, 2**63 - 1),
                                                         _log.native_level(), plugin_path)

    def load_plugin(self, path: str) -> None:
        """Loads a plugin by file or by name. NotFoundError, UnimplementedError when it does not fit."""
        native.shw_context_load_plugin(self._handle, path)

    def plugins(self) -> list[dict[str, Any]]:
        """Plugins that are loaded or lie in the search path."""
        found = json.loads(native.shw_context_plugins(self._handle)[0])
        return list(found.get("plugins", ())) if isinstance(found, dict) else list(found)

    def shutdown(self, timeout: float | None = None) -> bool:
        """Waits for the jobs of the context, cancelling them after half of `timeout` seconds (None = no limit). False
        when some job still runs. The context takes no jobs afterwards."""
        limit = -1 if timeout is None else nanoseconds("timeout", timeout)
        done: bool = native.shw_py_context_shutdown(self._handle, limit)
        _log.drain()
        return done

    def close(self) -> None:
        """Releases the context; jobs and checkpoints that use it keep it alive. Twice is fine."""
        native.shw_py_close(self._handle)

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a Context owns threads and is not pickled; make one in each process")


_lock = threading.Lock()
_contexts: dict[str, Context] = {}
_live: set[Any] = set()  # jobs that have not ended, as far as is known
_watcher: threading.Thread | None = None  # runs while there are any
_owner_process = os.getpid()


def shared(use: str = "calls", rank: int = 0) -> Context:
    """The context of all calls ("calls") or of the jobs of a rank ("jobs"): jobs of one context run one after another, so
    ranks that live in one process must not share it."""
    use = f"{use} {rank}" if rank else use
    with _lock:
        if use not in _contexts:
            _contexts[use] = Context()
        return _contexts[use]


def keep_until_done(job: Any) -> None:
    """Holds a job, and with it the memory that it uses, until it has ended, whatever the caller does with it. A thread
    that the end wakes lets go of it, so that threads of the library never wait for the GIL."""
    global _watcher
    with _lock:
        if not native.shw_py_job_watch(job._handle):
            return  # it has ended
        _live.add(job)
        if _watcher is None:
            thread = threading.Thread(target=_let_ended_go, name="shardwright-jobs", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads: the next job tries again, and waiting for this one lets go, too
                return
            _watcher = thread


def _let_ended_go() -> None:
    global _watcher
    while True:
        native.shw_py_job_ends_wait()
        with _lock:
            ended = [job for job in _live if job.ended()]
            _live.difference_update(ended)
            done = not _live
            if done:
                _watcher = None
        while ended:
            ended.pop().let_go()  # the last one to hold a job that was dropped
        if done:
            return


def forget(job: Any) -> None:
    """Ends the holding of a job that has ended."""
    with _lock:
        _live.discard(job)


def _at_exit() -> None:
    if os.getpid() == _owner_process:
        for context in _contexts.values():
            context.shutdown(_EXIT_SECONDS)
        with _lock:
            ended = [job for job in _live if job.ended()]
            _live.difference_update(ended)
            for job in _live:
                native.shw_py_leak(job)  # its memory must outlive the interpreter's clean-up
        ended.clear()
    native.shw_py_set_finalizing()


atexit.register(_at_exit)


def _after_fork_in_child() -> None:
    """The child's atexit hook must neither wait for threads that are not there nor touch the parent's jobs."""
    global _lock, _watcher
    _lock = threading.Lock()
    _watcher = None


os.register_at_fork(after_in_child=_after_fork_in_child)
