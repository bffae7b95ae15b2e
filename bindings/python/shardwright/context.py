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
from collections.abc import Callable
from typing import Any

from . import _log
from ._library import native
from ._options import nanoseconds, number
from .errors import ResourceExhaustedError

_EXIT_SECONDS = 10.0


class Context:
    """Threads, memory and plugins that calls share.

    Args:
        threads: worker threads; 0 = min(cores, 8).
        memory_budget: bytes of staging memory; 0 = 256 MiB.
        plugin_path: directories, separated by colons, that are searched for plugins first.
        machine: ranks share memory only with those of their machine that say the same text, so that a job can tell apart
            containers of one host; "" = with all of the machine.
    """

    def __init__(self, *, threads: int = 0, memory_budget: int = 0, plugin_path: str | None = None,
                 machine: str = "") -> None:
        self._handle: Any = native.shw_py_context_create(number("threads", threads, 2**31 - 1),
                                                         number("memory_budget", memory_budget, 2**63 - 1),
                                                         _log.EVERY_LEVEL, (plugin_path, machine))
        _log.listen()

    def load_plugin(self, path: str) -> None:
        """Loads a plugin by file or by name. NotFoundError, UnimplementedError when it does not fit."""
        native.shw_context_load_plugin(self._handle, path)

    def ask_plugin(self, plugin: str, question: str = "") -> str:
        """What a loaded plugin answers to a question that its documentation names. NotFoundError, UnimplementedError when
        it answers none."""
        return bytes(native.shw_context_ask_plugin(self._handle, plugin, question)[0]).decode()

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
_callbacks: dict[Any, list[Callable[[], object]]] = {}  # of jobs in _live, called once each has ended
_watcher: threading.Thread | None = None  # runs while there are any
_owner_process = os.getpid()
_exiting = False


def shared(use: str = "calls", rank: int = 0) -> Context:
    """The context of all calls ("calls") or of the jobs of a rank ("jobs"): jobs of one context run one after another, so
    ranks that live in one process must not share it."""
    use = f"{use} {rank}" if rank else use
    _log.listen()
    with _lock:
        if use not in _contexts:
            _contexts[use] = Context()
        return _contexts[use]


def keep_until_done(job: Any) -> None:
    """Holds a job, and with it the memory that it uses, until it has ended, whatever the caller does with it. A thread
    that the end wakes lets go of it, so that threads of the library never wait for the GIL."""
    with _lock:
        if native.shw_py_job_watch(job._handle):  # else it has ended
            _live.add(job)
            _watch()


def call_when_ended(job: Any, callback: Callable[[], object]) -> None:
    """Calls back once the job has ended, on the thread that lets go of jobs; here, if it has. What the callback raises is
    logged. ResourceExhaustedError where no thread can be had."""
    with _lock:
        waits = not job.ended()
        if waits and not _watch():
            raise ResourceExhaustedError("no thread can be started that tells of the end of a job; use Job.wait",
                                         {"resource": "threads"})
        if waits:
            _live.add(job)
            _callbacks.setdefault(job, []).append(callback)
    if not waits:
        callback()


def _watch() -> bool:
    """Starts the thread that lets go of jobs, unless it runs. Called with the lock. False when there are no more threads: the
    next job tries again, and waiting for a job lets go of it, too."""
    global _watcher
    if _watcher is None:
        thread = threading.Thread(target=_let_ended_go, name="shardwright-jobs", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        _watcher = thread
    return True


def _let_ended_go() -> None:
    global _watcher
    while True:
        native.shw_py_job_ends_wait()
        with _lock:
            ended = [job for job in [*_live, *_callbacks] if job.ended()]
            _live.difference_update(ended)
            calls = [each for job in ended for each in _callbacks.pop(job, ())]
            done = not _live and not _callbacks
            if done:
                _watcher = None
        while ended:
            ended.pop().let_go()  # the last one to hold a job that was dropped
        if not _exiting:  # what is written while the interpreter goes down is written by its main thread
            _log.drain()
        while calls:
            try:
                calls.pop(0)()
            except Exception:  # noqa: BLE001 - there is no caller that it could reach; other jobs end, too
                _log.logger.exception("what was to follow the end of a job failed")
        if done:
            return


def forget(job: Any) -> None:
    """Ends the holding of a job that has ended."""
    with _lock:
        _live.discard(job)


def _at_exit() -> None:
    global _exiting
    _exiting = True
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
    native.shw_py_fork_ends_in_child()
    _lock = threading.Lock()
    _watcher = None


os.register_at_fork(before=native.shw_py_fork_begins, after_in_parent=native.shw_py_fork_ends,
                    after_in_child=_after_fork_in_child)
