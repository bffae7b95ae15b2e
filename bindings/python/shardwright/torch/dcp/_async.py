# SPDX-License-Identifier: Apache-2.0
"""Saves in the background: one at a time in a process, each over the side group of background work.

The library copies the state into memory that it keeps and plans and writes outside of the interpreter. With a stager or
storage of the caller a thread does what `save` does; with PROCESS a daemon does (_daemon).
"""
from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable
from typing import Any, cast

import torch
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.staging import AsyncStager, DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict_saver import AsyncSaveResponse

from ...context import call_when_ended
from ...errors import FailedPreconditionError, ShardwrightError
from ...jobs import Job
from . import _choice, _daemon, _direct, _saving
from ._direct import Members
from ._errors import of_call
from ._saving import SaveCall

Staged = Any  # a state dict, or a future of one
Upload = concurrent.futures.Future[Metadata]

_last: Upload | None = None
_turn = threading.Lock()


class NoCpuBackendError(FailedPreconditionError, AssertionError):
    """The process group cannot move host memory."""


@atexit.register
def _wait_for_last() -> None:
    """A program that ends does not lose the save that it has begun."""
    if _last is not None:
        concurrent.futures.wait([_last])


def check_cpu_backend(members: Members) -> None:
    """As torch does: NoCpuBackendError (an AssertionError) for a group without a backend for host tensors."""
    group = _choice.group_of(members)
    if group is not None and torch.device("cpu") not in group._device_types:
        raise NoCpuBackendError("A CPU backend must be enabled for async save; try initializing process group with "
                                "'cpu:gloo,cuda:nccl'")


def start(tree: dict[str, Any], call: SaveCall, stager: AsyncStager | None, process: bool) -> Upload | AsyncSaveResponse:
    """Waits for the save before this one, copies the state and begins to save it."""
    global _last
    with _turn:
        if _last is not None:
            concurrent.futures.wait([_last])  # what it ended with belongs to who has it
        if stager is None and not process:
            upload = _by_library(tree, call)
            if upload is not None:
                _last = upload
                return upload
        own = None if stager is not None else DefaultStager(StagingOptions(False, False, False, False))
        staged = _staged(tree, stager or own, own)
        _last = _upload(staged, call, process)
        if own is not None:
            _last.add_done_callback(lambda _: own.close())
        return _response(staged, _last, stager or own)


# ---- by the library ----

def _by_library(tree: dict[str, Any], call: SaveCall) -> Upload | None:
    """None, and nothing done, where the save goes step by step."""
    place = call.place
    if place is None:
        return None
    job = _direct.save_async(tree, place, call.members, call.verify_replicas, _saving.options_of(call))
    if job is None:
        return None
    upload: Upload = concurrent.futures.Future()
    upload.set_running_or_notify_cancel()
    call_when_ended(job, lambda: _settle(upload, lambda: _result(job, call)))
    with contextlib.suppress(ShardwrightError):  # which comes out of the future
        job.wait_staged()
    return upload


def _result(job: Job, call: SaveCall) -> Metadata:
    try:
        return _saving.metadata_of(call, job.result())
    except ShardwrightError as e:
        raise of_call("write", e, call.members.rank) from e


def _settle(future: concurrent.futures.Future[Any], result: Callable[[], Any]) -> None:
    try:
        future.set_result(result())
    except BaseException as e:  # there is no caller but who has the future
        future.set_exception(e)


# ---- with a stager, by a thread or a daemon ----

def _staged(tree: dict[str, Any], stager: Any, own: DefaultStager | None) -> Staged:
    try:
        return stager.stage(tree)
    except BaseException:
        if own is not None:
            own.close()
        raise


def _upload(staged: Staged, call: SaveCall, process: bool) -> Upload:
    daemon = _daemon.of(call.members) if process else None  # made by all ranks together, on the caller's thread
    apart = call._replace(members=call.members._replace(use="uploads"))  # the thread has a side group of its own
    upload: Upload = concurrent.futures.Future()
    upload.set_running_or_notify_cancel()

    def run() -> None:
        def result() -> Metadata:
            tree = staged.result() if isinstance(staged, concurrent.futures.Future) else staged
            return _saving.run(tree, apart) if daemon is None else daemon.save(tree, call)

        _settle(upload, result)

    threading.Thread(target=run, name="shardwright-async-save", daemon=False).start()  # the end of the program waits for it
    return upload


def _response(staged: Staged, upload: Upload, stager: Any) -> Upload | AsyncSaveResponse:
    if not isinstance(staged, concurrent.futures.Future):
        if stager.should_synchronize_after_execute:
            stager.synchronize_staging()
        return upload
    copied: concurrent.futures.Future[None] = concurrent.futures.Future()
    copied.set_running_or_notify_cancel()

    def tell(done: concurrent.futures.Future[Any]) -> None:
        _settle(copied, lambda: done.result() and None)

    staged.add_done_callback(tell)
    return AsyncSaveResponse(staging_completion=copied, upload_completion=cast(Any, upload))
