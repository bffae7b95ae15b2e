# SPDX-License-Identifier: Apache-2.0
"""The steps of a save or load that ranks make together while Python objects are passed between them: what storage
plug-ins and planners of the user need. A step that fails on some ranks fails on all, with all failures.

Bytes go over the side group of shardwright (_groups), so a rank that dies, or gives up, ends the wait of the others.
"""
from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NoReturn

import torch.distributed as dist

from ...collective import Collective, SingleCollective
from ...errors import HostExceptionError
from .. import _agreed
from ._errors import CheckpointError, Failure, failed, wrapped
from .planner import InvalidPlanError

_SIZE_BYTES = 8


class _Failed:
    """What stands for the result of a rank on which a step failed."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class Steps:
    """Steps over a process group; None = one rank. `collective` is its transport; `rank` and `coordinator_rank` count within the group.

    Steps are called by all ranks of the group in the same order. They raise CheckpointError on all ranks where one failed.
    """

    def __init__(self, group: dist.ProcessGroup | None, coordinator_rank: int = 0, use: str = "calls") -> None:
        self.collective: Collective = SingleCollective() if group is None else _agreed(group, None, None, use)
        self.rank, self.size = self.collective.rank, self.collective.size
        self.coordinator_rank = coordinator_rank
        self.is_coordinator = self.rank == coordinator_rank

    def reduce_scatter(self, step: str, local: Callable[[], Any], merge: Callable[[list[Any]], list[Any]]) -> Any:
        """`local` on each rank, `merge` of all results on the coordinator, of which each rank gets its part."""
        gathered = self._gather(_attempt(local))
        parts = None if gathered is None else self._merged(step, gathered, lambda found: _one_each(merge(found), self.size))
        return self._arrived(step, self._scatter([parts] * self.size if isinstance(parts, CheckpointError) else parts))

    def all_reduce(self, step: str, local: Callable[[], Any], merge: Callable[[list[Any]], Any]) -> Any:
        """`local` on each rank, `merge` of all results on the coordinator, whose result all ranks get."""
        gathered = self._gather(_attempt(local))
        merged = None if gathered is None else self._merged(step, gathered, merge)
        return self._arrived(step, self._broadcast(merged))

    def together(self, step: str, local: Callable[[], Any]) -> Any:
        """`local` on each rank. Nothing but one word is exchanged where it fails on none."""
        return self._agreed(step, _attempt(local))

    def all_gather(self, step: str, value: Any) -> list[Any]:
        """The values of all ranks, on each. A value that cannot be sent, or taken, fails the step."""
        packed = self.together(step, lambda: pickle.dumps(value))
        parts = self._all_gather_bytes(packed)
        found: list[Any] = self.together(step, lambda: [pickle.loads(part) for part in parts])
        return found

    def any(self, here: bool) -> bool:
        """True on all ranks where it is on one."""
        return self.collective.all_reduce_i64([int(here)], "max")[0] == 1

    def _agreed(self, step: str, found: Any) -> Any:
        if not self.any(isinstance(found, _Failed)):
            return found
        shown = self._all_gather(found if isinstance(found, _Failed) else None)
        self._raise(failed(step, {rank: each.failure for rank, each in enumerate(shown) if isinstance(each, _Failed)}))

    def _arrived(self, step: str, found: Any) -> Any:
        """What the coordinator sent, where all ranks could take theirs."""
        if isinstance(found, CheckpointError):
            self._raise(found)
        return self._agreed(step, found)

    def _raise(self, error: CheckpointError) -> NoReturn:
        """An interrupt of this rank goes on as what it is."""
        own = error.failures.get(self.rank)
        raise error if own is None or isinstance(own[0], Exception) else own[0]

    def _merged(self, step: str, gathered: list[Any], merge: Callable[[list[Any]], Any]) -> Any:
        failures = {rank: found.failure for rank, found in enumerate(gathered) if isinstance(found, _Failed)}
        if not failures:
            merged = _attempt(lambda: merge(gathered))
            if not isinstance(merged, _Failed):
                return merged
            failures[self.rank] = merged.failure
        return failed(step, failures)

    # ---- objects as bytes ----

    def _gather(self, value: Any) -> list[Any] | None:
        if self.size == 1:
            return [value]
        mine = _packed(value)
        sizes = self._sizes(len(mine))
        gathered, position, found = self.collective.gather(mine, sizes, self.coordinator_rank), 0, []
        if not self.is_coordinator:
            return None
        for rank, size in enumerate(sizes):
            own = rank == self.rank
            found.append(value if own else _unpacked(gathered[position:position + size]))
            position += size
        return found

    def _all_gather(self, value: Any) -> list[Any]:
        parts = self._all_gather_bytes(_packed(value))
        return [value if rank == self.rank else _unpacked(part) for rank, part in enumerate(parts)]

    def _all_gather_bytes(self, mine: bytes) -> list[bytes]:
        sizes = self._sizes(len(mine))
        gathered, position, found = self.collective.all_gather(mine, sizes), 0, []
        for size in sizes:
            found.append(gathered[position:position + size])
            position += size
        return found

    def _scatter(self, parts: list[Any] | None) -> Any:
        if self.size == 1:
            return None if parts is None else parts[0]
        packed = [] if parts is None else [_packed(part) for part in parts]
        heads = [len(part).to_bytes(_SIZE_BYTES, "little") for part in packed]
        size = int.from_bytes(self.collective.scatter(heads, _SIZE_BYTES, self.coordinator_rank), "little")
        found = self.collective.scatter(packed, size, self.coordinator_rank)
        return _unpacked(found) if parts is None else parts[self.rank]

    def _broadcast(self, value: Any) -> Any:
        if self.size == 1:
            return value
        mine = _packed(value) if self.is_coordinator else b""
        head = self.collective.broadcast(len(mine).to_bytes(_SIZE_BYTES, "little"), self.coordinator_rank)
        room = mine if self.is_coordinator else bytes(int.from_bytes(head, "little"))
        found = self.collective.broadcast(room, self.coordinator_rank)
        return value if self.is_coordinator else _unpacked(found)

    def _sizes(self, size: int) -> list[int]:
        packed = self.collective.all_gather(size.to_bytes(_SIZE_BYTES, "little"))
        return [int.from_bytes(packed[at:at + _SIZE_BYTES], "little") for at in range(0, len(packed), _SIZE_BYTES)]


def _attempt(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except BaseException as e:  # whatever it is, also an interrupt: the other ranks are told before it goes on
        return _Failed(wrapped(e))


def _one_each(parts: list[Any], size: int) -> list[Any]:
    if len(parts) != size:
        raise InvalidPlanError(f"{len(parts)} plans were made for {size} ranks")
    return parts


def _packed(value: Any) -> bytes:
    """A pickle of a value; where it cannot be one, of the failure that this is."""
    if isinstance(value, _Failed):
        return pickle.dumps(_Failed((that_travels(value.failure[0]), value.failure[1])))
    if isinstance(value, CheckpointError):
        return pickle.dumps(failed(value.step, {rank: (that_travels(e), stack) for rank, (e, stack) in value.failures.items()}))
    try:
        return pickle.dumps(value)
    except Exception as e:  # of the user's own objects
        return pickle.dumps(_Failed(wrapped(that_travels(e))))


def _unpacked(data: bytes) -> Any:
    try:
        return pickle.loads(data)
    except Exception as e:  # of the user's own objects
        return _Failed(wrapped(e))


def that_travels(error: BaseException) -> BaseException:
    """An exception that another process can take: itself, or one with its words."""
    try:
        again = pickle.loads(pickle.dumps(error))
        if isinstance(again, BaseException) and str(again) == str(error):
            return error
    except Exception:  # whatever its class does when it is pickled
        pass
    return HostExceptionError(f"{type(error).__name__}: {error}")
