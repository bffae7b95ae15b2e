# SPDX-License-Identifier: Apache-2.0
"""Saves in the background as megatron-core's drivers schedule them.

Nothing is forked: a request of our strategies is a job of the library, which has begun when the request is made, and other
requests run on threads. Finalizers run on the caller's thread, in order, when all ranks have written. What fails on one rank
raises on all of them, and then no finalizer runs.
"""
from __future__ import annotations

import queue
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from ..errors import CheckpointingException, PlannerStateError, failure

_ORIGINAL = "megatron.core.dist_checkpointing.strategies.async_utils"


class AsyncRequest(NamedTuple):
    """What is still to be done of a save.

    Attributes:
        async_fn, async_fn_args, async_fn_kwargs: writes, or waits until somebody else has; None = nothing to do.
        finalize_fns: called in order on the caller's thread when all ranks have written.
        preload_fn: makes the second of three arguments, on the caller's thread, before async_fn runs.
        is_frozen: no more finalizers are taken.
        call_idx: number of the call in its queue.
    """

    async_fn: Callable[..., Any] | None
    async_fn_args: tuple[Any, ...]
    finalize_fns: list[Callable[[], Any]]
    async_fn_kwargs: dict[str, Any] = {}  # noqa: RUF012 - of a NamedTuple, as in the original; never changed
    preload_fn: Callable[[], Any] | None = None
    is_frozen: bool = False
    call_idx: int = 0

    def add_finalize_fn(self, fn: Callable[[], Any]) -> None:
        """Adds a finalizer after those that there are. RuntimeError for a frozen request."""
        if self.is_frozen:
            raise FrozenRequestError("Cannot add finalization functions to a frozen AsyncRequest")
        self.finalize_fns.append(fn)

    def execute_sync(self) -> None:
        """Does everything now: preload, write, wait for the other ranks, finalizers."""
        _write(self, self._arguments())
        if _is_distributed():
            dist.barrier()
        for finalize in self.finalize_fns:
            finalize()

    def freeze(self) -> AsyncRequest:
        """The same request, which takes no more finalizers."""
        return self._replace(is_frozen=True)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _request_there, tuple(self)

    def _arguments(self) -> list[Any]:
        arguments = list(self.async_fn_args)
        if self.preload_fn is not None:
            if len(arguments) != 3:
                raise failure(PlannerStateError, f"a request with preload_fn has {len(arguments)} arguments, not 3")
            arguments[1] = self.preload_fn()
        return arguments


def _request_there(*fields: Any) -> Any:
    """A request that was sent to this process. The worker of megatron-core's persistent queue passes over what is not of its
    own class, and its trainer would wait for the answer for ever."""
    original = sys.modules.get(_ORIGINAL)
    return AsyncRequest(*fields) if original is None else original.AsyncRequest(*fields)


class FrozenRequestError(CheckpointingException, RuntimeError):
    """A finalizer was added to a request that is scheduled already."""


def _write(request: Any, arguments: list[Any]) -> None:
    if request.async_fn is not None:
        request.async_fn(*arguments, **request.async_fn_kwargs)


class _Call:
    """One request on its way. Whoever runs it does so once; everybody may wait."""

    def __init__(self, request: Any, arguments: list[Any]) -> None:
        self._request, self._arguments = request, arguments
        self._done = threading.Event()
        self.error: BaseException | None = None
        if request.async_fn is None:
            self._done.set()

    def run(self) -> None:
        """Writes."""
        if self._done.is_set():
            return
        try:
            _write(self._request, self._arguments)
        except BaseException as e:  # told to all ranks by who asks for the end
            self.error = e
        finally:
            self._arguments = []  # lets go of what was written
            self._done.set()

    def wait(self, blocking: bool) -> bool:
        """Whether it has ended. Waits in slices, so that Ctrl-C ends a wait."""
        while blocking and not self._done.wait(0.1):
            pass
        return self._done.is_set()


class AsyncCaller(ABC):
    """Runs requests of one rank beside training."""

    @abstractmethod
    def schedule_async_call(self, async_req: Any) -> None:
        """Begins a request; preload_fn runs before this returns."""

    @abstractmethod
    def _first(self) -> _Call | None:
        """The request that ends next."""

    @abstractmethod
    def _forget_first(self) -> None:
        """Called when the first request has ended on all ranks."""

    @abstractmethod
    def close(self, abort: bool = False) -> None:
        """Waits for what runs; with abort for nothing."""

    def is_current_async_call_done(self, blocking: bool = False, no_dist: bool = False) -> bool:
        """Whether the first request has ended on all ranks; with no_dist on this one. Collective unless no_dist.

        Raises:
            CheckpointingException: writing failed on a rank; the same one on all ranks unless no_dist.
        """
        call = self._first()
        if call is None:
            return self.sync_all_async_calls(0) if not no_dist else True
        here = call.wait(blocking)
        done = here if no_dist else self.sync_all_async_calls(int(not here))
        if done:
            self._forget_first()
            _raise_together(call.error, no_dist)
        return done

    def sync_all_async_calls(self, is_alive: int) -> bool:
        """Collective: whether no rank has a request that is still alive."""
        return _reduced(is_alive, dist.ReduceOp.SUM) == 0


class TemporalAsyncCaller(AsyncCaller):
    """One request, on a thread of its own."""

    def __init__(self) -> None:
        self._call: _Call | None = None

    def schedule_async_call(self, async_req: Any) -> None:
        """Begins the request."""
        self._call = _Call(async_req, AsyncRequest._arguments(async_req))
        # Not a daemon: a program that ends does not lose the save that it has begun.
        threading.Thread(target=self._call.run, name="shardwright-async-call", daemon=False).start()

    def _first(self) -> _Call | None:
        return self._call

    def _forget_first(self) -> None:
        self._call = None

    def close(self, abort: bool = False) -> None:
        """Waits for the request, unless it is to be left alone."""
        if self._call is not None and not abort:
            self._call.wait(blocking=True)
        self._call = None


class PersistentAsyncCaller(AsyncCaller):
    """All requests, one after the other, on one thread that stays."""

    def __init__(self) -> None:
        self._calls: deque[_Call] = deque()
        self._work: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def schedule_async_call(self, async_req: Any) -> None:
        """Puts the request behind those that were scheduled before."""
        call = _Call(async_req, AsyncRequest._arguments(async_req))
        self._calls.append(call)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="shardwright-async-calls", daemon=True)
            self._thread.start()
        self._work.put(call)

    def _serve(self) -> None:
        while (call := self._work.get()) is not None:
            call.run()

    def _first(self) -> _Call | None:
        return self._calls[0] if self._calls else None

    def _forget_first(self) -> None:
        self._calls.popleft()

    def close(self, abort: bool = False) -> None:
        """Ends the thread behind what it has to do, and waits for that unless aborted. The next request begins a new one."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._work.put(None)
            if not abort:
                thread.join()
        self._work = queue.SimpleQueue()
        self._calls.clear()


class _Active(NamedTuple):
    idx: int
    async_caller: AsyncCaller
    async_request: Any


class AsyncCallsQueue:
    """Requests in the order in which they were scheduled; all ranks schedule and finalize the same ones.

    Args:
        persistent: one thread for all requests instead of one for each.
    """

    def __init__(self, persistent: bool = False) -> None:
        self.async_calls: deque[_Active] = deque()
        self.call_idx = -1
        self.persistent = persistent
        self.persistent_caller: PersistentAsyncCaller | None = None

    def _get_async_caller(self) -> AsyncCaller:
        if not self.persistent:
            return TemporalAsyncCaller()
        if self.persistent_caller is None:
            self.persistent_caller = PersistentAsyncCaller()
        return self.persistent_caller

    def schedule_async_request(self, async_request: Any) -> int:
        """Begins a request, of ours or of megatron-core, and freezes it. Gives its number, from 0."""
        self.call_idx += 1
        caller = self._get_async_caller()
        request = AsyncRequest(**async_request._asdict()).freeze()
        caller.schedule_async_call(request._replace(call_idx=self.call_idx, finalize_fns=[]))
        self.async_calls.append(_Active(self.call_idx, caller, request))
        return self.call_idx

    def maybe_finalize_async_calls(self, blocking: bool = False, no_dist: bool = False) -> list[int]:
        """Finalizes what all ranks have written, first in, first out; gives the numbers of these requests. Collective.

        Args:
            blocking: waits for all requests.
            no_dist: each rank looks at its own writes only. Finalizers still run on all ranks.
        Raises:
            CheckpointingException: writing failed on a rank; that request is gone from the queue, and its finalizers did not
                run. What a finalizer raises comes out as it is. PlannerStateError (an AssertionError): ranks finalize
                different requests.
        """
        finalized = []
        while self.async_calls and self._is_first_done(blocking, no_dist):
            call = self.async_calls.popleft()
            for finalize in call.async_request.finalize_fns:
                finalize()
            if _reduced(call.idx, dist.ReduceOp.MAX) != call.idx:
                raise failure(PlannerStateError, "Unmatched async calls. Not all ranks finalize the same request; this one "
                              f"finalized {call.idx}", call=call.idx)
            finalized.append(call.idx)
        return finalized

    def _is_first_done(self, blocking: bool, no_dist: bool) -> bool:
        try:
            return self.async_calls[0].async_caller.is_current_async_call_done(blocking, no_dist)
        except CheckpointingException:
            self.async_calls.popleft()
            raise

    def get_num_unfinalized_calls(self) -> int:
        """How many requests have not been finalized."""
        return len(self.async_calls)

    def close(self, abort: bool = False) -> None:
        """Finalizes all requests; with abort, leaves them."""
        if abort:
            self.async_calls.clear()
        else:
            self.maybe_finalize_async_calls(blocking=True)
        if self.persistent_caller is not None:
            self.persistent_caller.close(abort)


# ---- what ranks tell each other ----

def _is_distributed() -> bool:
    return dist.is_available() and dist.is_initialized()


def _device() -> torch.device:
    """Where tensors lie that the default group moves."""
    kinds = dist.group.WORLD._device_types  # type: ignore[union-attr]
    return torch.device("cpu") if torch.device("cpu") in kinds else torch.device("cuda", torch.cuda.current_device())


def _reduced(value: int, operation: Any) -> int:
    if not _is_distributed():
        return value
    told = torch.tensor([value], dtype=torch.int64, device=_device())
    dist.all_reduce(told, op=operation)
    return int(told.item())


def _raise_together(error: BaseException | None, alone: bool) -> None:
    """Raises what writing failed with, of the lowest rank, on all of them."""
    if not alone and _reduced(int(error is not None), dist.ReduceOp.MAX) == 0:
        return
    said = None if error is None else f"{type(error).__name__}: {error}"
    everyone: list[str | None] = [said]
    rank = 0
    if not alone and _is_distributed():
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, said)
        rank = next(rank for rank, found in enumerate(everyone) if found is not None)
    if everyone[rank] is not None:
        where = f" of rank {rank}" if len(everyone) > 1 else ""
        raise failure(CheckpointingException, f"the writer{where} failed: {everyone[rank]}; the checkpoint is not finalized",
                      rank=rank) from error
