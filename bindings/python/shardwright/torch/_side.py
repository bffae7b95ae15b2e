# SPDX-License-Identifier: Apache-2.0
"""Gloo groups of our own, one beside each process group of the caller and use.

An operation of Gloo cannot be withdrawn: after a failed call it stays pending and takes what a peer sends next. So the
calls of shardwright never run over a group of the caller, and a group with which a call failed is given up by all ranks;
the next call makes another one. What ended a group is told through the store of torch.distributed, because Gloo cannot
wake a peer. Groups are made without dist.new_group, which counts calls and would put the members of a group out of step
with the other ranks.
"""
from __future__ import annotations

import atexit
import datetime
import hashlib
import json
import threading
import weakref
from typing import Any, NamedTuple

import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from .._library import native
from ..errors import AbortedError, ShardwrightError, UnavailableError, from_native
from ._rendezvous import rendezvous

DEFAULT_SECONDS = 1800.0

_sides: weakref.WeakKeyDictionary[dist.ProcessGroup, dict[str, SideGroup]] = weakref.WeakKeyDictionary()
_pending: list[tuple[Any, Any]] = []  # groups that were given up, and the operation that still runs there


class End(NamedTuple):
    """Why a group was given up, and in which of its calls."""

    code: int
    message: str
    call: int


def keep_until_done(gloo: Any, work: Any) -> None:
    """Holds a group that was given up: its destructor waits for what is pending."""
    _pending[:] = [held for held in _pending if not held[1].is_completed()]
    if not work.is_completed():
        _pending.append((gloo, work))


@atexit.register
def _leave_pending_behind() -> None:
    """The end of the process must not wait for operations that no peer will answer."""
    for gloo, work in _pending:
        if not work.is_completed():
            native.shw_py_leak(gloo)


class SideGroup:
    """A Gloo group of the ranks of another one. Making it is collective."""

    def __init__(self, group: dist.ProcessGroup, use: str, seconds: float) -> None:
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self._store = default_store()
        place = f"shardwright/{use}/{name_of(group)}"
        try:
            # An id that no group had before: a key that an earlier one left behind is not taken for one of this.
            self._id = f"shardwright/{rendezvous(self._store, place, self.rank, self.size, seconds)[0]}"
            self.gloo: Any = dist.ProcessGroupGloo(c10d.PrefixStore(self._id, self._store), self.rank, self.size,
                                                   datetime.timedelta(seconds=seconds))
        except dist.DistError as e:
            raise UnavailableError(f"rank {self.rank}: no process group for the calls of shardwright could be made: {e}",
                                   retryable=True) from e
        self._lock = threading.Lock()
        self._end: End | None = None
        self._calls = 0

    def begin_call(self) -> int:
        """Number of a call over this group, equal on all ranks."""
        self._calls += 1
        return self._calls

    def end(self) -> End | None:
        """What ended the group, as far as this rank knows."""
        return self._end

    def look_for_end(self) -> End | None:
        """The same; asks the store what other ranks know."""
        with self._lock:
            if self._end is None and self._store.check([f"{self._id}/end"]):
                self._leave(self._store.get(f"{self._id}/end"))
            return self._end

    def check(self) -> None:
        """Raises what ended the group on any rank."""
        end = self.look_for_end()
        if end is not None:
            raise from_native(end.code, end.message, (), 1 if end.code == AbortedError.code else 0, None)

    def give_up(self, code: int, message: str, call: int) -> None:
        """Ends the group on all ranks; the first one to do so says why. A rank that waits sees it within a slice."""
        with self._lock:
            if self._end is not None:
                return
            mine = End(code, message, call)
            try:
                self._leave(self._store.compare_set(f"{self._id}/end", "", json.dumps(mine)))
            except dist.DistError:
                self._end = mine  # nobody can be told any more: each rank ends by its own deadline

    def _leave(self, told: bytes) -> None:
        self._end = End(*json.loads(told))
        if self._store.add(f"{self._id}/left", 1) == self.size:
            self._store.delete_key(f"{self._id}/end")
            self._store.delete_key(f"{self._id}/left")


def is_over(group: dist.ProcessGroup, use: str) -> bool:
    """Whether the next call needs a new group."""
    side = _sides.get(group, {}).get(use)
    return side is None or _ended(side)


def side_group(group: dist.ProcessGroup, use: str, seconds: float | None, *, renew: bool = False) -> SideGroup:
    """The side group of that use. It is made by the first call, after a failure, and where `renew` is set; those calls
    are collective."""
    uses = _sides.setdefault(group, {})
    side = uses.get(use)
    if side is None or renew or _ended(side):
        side = uses[use] = SideGroup(group, use, DEFAULT_SECONDS if seconds is None else seconds)
    return side


def _ended(side: SideGroup) -> bool:
    try:
        return side.look_for_end() is not None
    except dist.DistError as e:
        raise UnavailableError(f"rank {side.rank}: the store of torch.distributed does not answer; is the rank that "
                               f"holds it still there? {e}", retryable=True) from e


def default_store() -> Any:
    """A connection of its own to the store of torch.distributed: it waits for no other thread, and does not keep the server
    after the caller's end."""
    store = c10d._get_default_store()
    try:
        return store.clone()
    except (NotImplementedError, RuntimeError):
        return store


def name_of(group: dist.ProcessGroup) -> str:
    """The same on the ranks of a group, another one for every other group of the store."""
    ranks = dist.get_process_group_ranks(group)
    return hashlib.sha256(f"{group.group_name} {ranks}".encode()).hexdigest()[:32]


def error_for_peers(error: BaseException, rank: int, operation: str) -> ShardwrightError:
    """What other ranks are told about an exception that left an operation."""
    if isinstance(error, ShardwrightError):
        return error
    return AbortedError(f"rank {rank}: {operation} over the process group failed: {type(error).__name__}: {error}",
                        retryable=True)
