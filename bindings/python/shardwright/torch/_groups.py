# SPDX-License-Identifier: Apache-2.0
"""Process groups as transport: byte operations on CPU tensors over a Gloo group beside the caller's one.

Waits are cut into slices. Between two slices a rank looks whether another one has given up. Gloo sees tensors of torch
only, never memory of the core: an operation that was given up may still write when the call has long returned. Background
work gets a side group of its own, as two threads must not share one.
"""
from __future__ import annotations

import ctypes
import datetime
import itertools
import json
import threading
import time
from typing import Any, NoReturn

import torch
import torch.distributed as dist
import torch._C._distributed_c10d as _c10d

from ..collective import Collective
from ..errors import (DeadlineExceededError, HostExceptionError, InvalidArgumentError, OutOfRangeError, ShardwrightError,
                      UnavailableError, from_native)
from ._side import error_for_peers, keep_until_done, side_group

_SLICE_SECONDS = 0.5
_GRACE_SECONDS = 5.0
_LIMIT_MAX_SECONDS = 3e8
_INT64 = 2**63


def agree(end: Collective, problem: BaseException | None) -> None:
    """Collective: returns where no rank has a problem. Raises this rank's, or else that of the lowest rank with one."""
    code = 0 if problem is None else problem.code if isinstance(problem, ShardwrightError) else HostExceptionError.code
    if end.all_reduce_i64([code], "max")[0] == 0:
        return
    mine = json.dumps([code, _text_of(problem)]).encode()
    packed = end.all_gather(len(mine).to_bytes(8, "little"))
    sizes = [int.from_bytes(packed[at:at + 8], "little") for at in range(0, len(packed), 8)]
    gathered, position = end.all_gather(mine, sizes), 0
    if problem is not None:
        raise problem
    for rank, size in enumerate(sizes):
        its_code, its_text = json.loads(gathered[position:position + size])
        position += size
        if its_code:
            raise from_native(its_code, f"rank {rank} could not take its state: {its_text}", [("rank", str(rank))], 0, None)


def _text_of(problem: BaseException | None) -> str:
    if problem is None or isinstance(problem, ShardwrightError):
        return "" if problem is None else str(problem)
    try:
        text = str(problem).partition("\n")[0]  # torch appends the stack of its C++ code
        return f"{type(problem).__name__}: {text}"
    except Exception:  # of the caller's own __str__: its peers still have to be told
        return type(problem).__name__


class GroupTransport:
    """The methods of HostCollective over the side group of one process group, for one call.

    `seconds` limits each operation, also those that come with a longer limit of their own. Collective where the side
    group has to be made, and always with `renew`.
    """

    name = "torch.distributed"

    def __init__(self, group: dist.ProcessGroup, use: str = "calls", seconds: float | None = None, *,
                 renew: bool = False) -> None:
        self._seconds = None if seconds is None else min(seconds, _LIMIT_MAX_SECONDS)
        self._side = side_group(group, use, self._seconds, renew=renew)
        self._call = self._side.begin_call()
        self.rank, self.size = self._side.rank, self._side.size

    @property
    def missed_the_end(self) -> bool:
        """Another rank gave the side group up in an earlier call, and is or will be in this call over a new one."""
        end = self._side.end()
        return end is not None and end.call < self._call

    def barrier(self, timeout: float | None) -> None:
        """Waits until all ranks are here."""
        options, limit = self._begin("barrier", _c10d.AllreduceOptions(), timeout)
        self._wait(self._side.gloo.allreduce([torch.zeros(1, dtype=torch.uint8)], options), "barrier", limit)

    def broadcast(self, data: memoryview, root: int, timeout: float | None) -> None:
        """Fills `data` with the root's bytes."""
        if not len(data):
            return
        options, limit = self._begin("broadcast", _c10d.BroadcastOptions(), timeout)
        options.rootRank = root
        carried = _copied(data)
        self._wait(self._side.gloo.broadcast([carried], options), "broadcast", limit)
        if self.rank != root:
            _fill(data, carried)

    def all_gather(self, data: memoryview, out: memoryview, timeout: float | None) -> None:
        """Gathers equal sizes."""
        if len(data):
            _fill(out, self._gathered(_copied(data), "all_gather", timeout))

    def all_gather_v(self, data: memoryview, out: memoryview, sizes: list[int], timeout: float | None) -> None:
        """Gathers sizes that differ, padded to the largest one."""
        largest = max(sizes)
        if largest == 0:
            return
        padded = torch.zeros(largest, dtype=torch.uint8)
        if len(data):
            padded[:len(data)] = _copied(data)
        gathered, position = self._gathered(padded, "all_gather_v", timeout), 0
        for rank, size in enumerate(sizes):
            _fill(out[position:position + size], gathered[rank * largest:rank * largest + size])
            position += size

    def gather_v(self, data: memoryview, out: memoryview, sizes: list[int] | None, root: int, timeout: float | None) -> None:
        """Sends to the root, which receives from each rank what is not empty."""
        self._check_sizes("gather_v", len(data), sizes, root, timeout)
        if self.rank != root:
            self._move("gather_v", [(_copied(data), root)] if len(data) else [], [], timeout)
            return
        parts = _parts_of(out, sizes)
        parts[root][:] = data
        others = [(torch.empty(len(part), dtype=torch.uint8), rank) for rank, part in enumerate(parts)
                  if rank != root and len(part)]
        self._move("gather_v", [], others, timeout)
        for carried, rank in others:
            _fill(parts[rank], carried)

    def scatter_v(self, parts: memoryview, sizes: list[int] | None, data: memoryview, root: int,
                  timeout: float | None) -> None:
        """The root sends to each rank what is not empty."""
        self._check_sizes("scatter_v", len(data), sizes, root, timeout)
        if self.rank != root:
            mine = [(torch.empty(len(data), dtype=torch.uint8), root)] if len(data) else []
            self._move("scatter_v", [], mine, timeout)
            for carried, _ in mine:
                _fill(data, carried)
            return
        each = _parts_of(parts, sizes)
        data[:] = each[root]
        self._move("scatter_v", [(_copied(part), rank) for rank, part in enumerate(each) if rank != root and len(part)],
                   [], timeout)

    def all_to_all_v(self, data: memoryview, data_sizes: list[int], out: memoryview, out_sizes: list[int],
                     timeout: float | None) -> None:
        """Moves what ranks have for each other in one operation of Gloo; what a rank has for itself stays outside."""
        self._check_pairs(data_sizes, out_sizes, timeout)
        parts, rooms = _parts_of(data, data_sizes), _parts_of(out, out_sizes)
        rooms[self.rank][:] = parts[self.rank]
        parts[self.rank] = rooms[self.rank] = memoryview(b"")
        ends = [0, *itertools.accumulate(len(room) for room in rooms)]
        sent, received = _copied(*parts), torch.empty(ends[-1], dtype=torch.uint8)
        options, limit = self._begin("all_to_all_v", _c10d.AllToAllOptions(), timeout)
        self._wait(self._side.gloo.alltoall_base(received, sent, [len(room) for room in rooms], [len(part) for part in parts],
                                                 options), "all_to_all_v", limit)
        for room, begin, end in zip(rooms, ends, ends[1:], strict=False):
            _fill(room, received[begin:end])

    def all_reduce_i64(self, values: memoryview, operation: str, timeout: float | None) -> None:
        """Reduces in place; sums are formed without wrapping: their halves apart."""
        if not len(values):
            return
        mine = torch.tensor(list(values), dtype=torch.int64)
        if operation != "sum":
            kind = dist.ReduceOp.MIN if operation == "min" else dist.ReduceOp.MAX
            for index, value in enumerate(self._reduced(mine, kind, "all_reduce", timeout).tolist()):
                values[index] = value
            return
        halves = torch.cat([mine >> 32, mine & 0xFFFFFFFF])
        sums = self._reduced(halves, dist.ReduceOp.SUM, "all_reduce", timeout).tolist()
        totals = [(high << 32) + low for high, low in zip(sums[:len(mine)], sums[len(mine):], strict=True)]
        for total in totals:
            if not -_INT64 <= total < _INT64:
                raise OutOfRangeError(f"sum {total} over {self.size} ranks does not fit into 64 bits")
        for index, total in enumerate(totals):
            values[index] = total

    def abort(self, code: int, message: str) -> None:
        """Tells the other ranks; they see it within a slice."""
        self._side.give_up(code, message, self._call)

    def close(self) -> None:
        """Nothing to do: the side group stays for the next call."""

    def _reduced(self, values: torch.Tensor, kind: Any, operation: str, timeout: float | None) -> torch.Tensor:
        options, limit = self._begin(operation, _c10d.AllreduceOptions(), timeout)
        options.reduceOp = kind
        self._wait(self._side.gloo.allreduce([values], options), operation, limit)
        return values

    def _check_sizes(self, operation: str, own: int, sizes: list[int] | None, root: int, timeout: float | None) -> None:
        """InvalidArgumentError on all ranks where the root's sizes are not theirs: Gloo ends the process over a message
        that is longer than what waits for it. Sizes are weighted by rank, so that two that are swapped show."""
        apart = own * _weight(self.rank)
        if self.rank == root:
            apart -= sum(size * _weight(rank) for rank, size in enumerate(sizes or ()))
        if self._differ(apart, operation, timeout):
            raise InvalidArgumentError(f"{operation}: the sizes that rank {root} gives are not those of the ranks",
                                       {"rank": str(root)})

    def _check_pairs(self, sent: list[int], expected: list[int], timeout: float | None) -> None:
        """The same where every rank has a row of sizes: the pairs are weighted. Where they differ, rows are compared, and
        the lowest rank that expects other bytes is named on all."""
        apart = sum(size * _weight(self.rank * self.size + to) for to, size in enumerate(sent))
        apart -= sum(size * _weight(sender * self.size + self.rank) for sender, size in enumerate(expected))
        if not self._differ(apart, "all_to_all_v", timeout):
            return
        rows = self._gathered(torch.tensor(sent, dtype=torch.int64), "all_to_all_v", timeout)
        own = self.size if rows[self.rank::self.size].tolist() == expected else self.rank
        lowest = int(self._reduced(torch.tensor([own], dtype=torch.int64), dist.ReduceOp.MIN, "all_to_all_v", timeout)[0])
        raise InvalidArgumentError(f"all_to_all_v: rank {lowest} expects other bytes than the ranks send it",
                                   {"rank": str(lowest)})

    def _differ(self, apart: int, operation: str, timeout: float | None) -> bool:
        """Whether the numbers of all ranks do not add up to nothing, as Gloo adds: modulo 2^64."""
        wrapped = (apart + _INT64) % (2 * _INT64) - _INT64
        found = self._reduced(torch.tensor([wrapped], dtype=torch.int64), dist.ReduceOp.SUM, operation, timeout)
        return int(found[0]) != 0

    def _move(self, operation: str, sent: list[tuple[torch.Tensor, int]], received: list[tuple[torch.Tensor, int]],
              timeout: float | None) -> None:
        """Point to point: waits that Gloo cannot cut into slices without breaking the group, so a thread waits."""
        if not sent and not received:
            return
        _, limit = self._begin(operation, _c10d.BarrierOptions(), timeout)
        gloo = self._side.gloo
        self._wait(_Transfers([gloo.recv([carried], rank, 0) for carried, rank in received]
                              + [gloo.send([carried], rank, 0) for carried, rank in sent]), operation, limit)

    def _gathered(self, mine: torch.Tensor, operation: str, timeout: float | None) -> torch.Tensor:
        options, limit = self._begin(operation, _c10d.AllgatherOptions(), timeout)
        gathered = torch.empty(self.size * len(mine), dtype=mine.dtype)
        self._wait(self._side.gloo.allgather([list(gathered.chunk(self.size))], [mine], options), operation, limit)
        return gathered

    def _begin(self, operation: str, options: Any, timeout: float | None) -> tuple[Any, float | None]:
        """Options of a Gloo operation, and its limit. Gloo gets a little more: it ends by itself what was given up."""
        end = self._side.end()
        if end is not None:
            raise UnavailableError(f"rank {self.rank}: {operation} cannot run, the group was given up after: {end.message}; "
                                   "begin the save or load anew on all ranks, which makes a new group",
                                   {"rank": str(self.rank)}, retryable=True)
        limits = [limit for limit in (timeout, self._seconds) if limit is not None]
        limit = min(limits) if limits else None
        seconds = _LIMIT_MAX_SECONDS if limit is None else min(limit, _LIMIT_MAX_SECONDS) + _GRACE_SECONDS
        options.timeout = datetime.timedelta(seconds=seconds)
        return options, limit

    def _wait(self, work: Any, operation: str, limit: float | None) -> None:
        until = None if limit is None else time.monotonic() + limit
        try:
            while not _ended(work, until):
                self._side.check()
                if until is not None and time.monotonic() >= until:
                    raise DeadlineExceededError(f"rank {self.rank}: {operation} of {self.size} ranks did not end within "
                                                f"{limit:g} s", {"rank": str(self.rank)})
        except BaseException as e:
            self._fail(e, work, operation)

    def _fail(self, error: BaseException, work: Any, operation: str) -> NoReturn:
        """Ends the group for all ranks: what is pending there would take the bytes of the next operation."""
        keep_until_done(self._side.gloo, work)
        if isinstance(error, RuntimeError) and not isinstance(error, ShardwrightError):
            self._raise_end_of_others()  # a peer that has gone often left a reason
        told = error_for_peers(error, self.rank, operation)
        self._side.give_up(told.code, told.message, self._call)
        if told is not error and isinstance(error, RuntimeError):
            raise told from error
        raise error

    def _raise_end_of_others(self) -> None:
        try:
            self._side.check()
        except dist.DistError:
            pass  # the store is gone too; the first error says more


class _Transfers:
    """Sends and receives that have begun, as one operation of which `_ended` is asked."""

    def __init__(self, works: list[Any]) -> None:
        self._works = works  # with them their tensors live until the thread is done
        self._error: BaseException | None = None
        self._done = threading.Event()
        threading.Thread(target=self._run, name="shardwright-transfers", daemon=True).start()

    def _run(self) -> None:
        try:
            for work in self._works:
                work.wait()
        except BaseException as e:
            self._error = e
        self._done.set()

    def is_completed(self) -> bool:
        return self._done.is_set()

    def wait(self, timeout: datetime.timedelta | None = None) -> None:
        """RuntimeError where the time is over, as a work of torch has it."""
        if not self._done.wait(None if timeout is None else timeout.total_seconds()):
            raise RuntimeError("transfers are under way")
        if self._error is not None:
            raise self._error


def _weight(rank: int) -> int:
    """An odd number that looks drawn: were it linear in the rank, sizes wrong by -1, -2 and +1 could add up to nothing."""
    mixed = (rank + 1) * 0x9E3779B97F4A7C15 % (2 * _INT64)
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % (2 * _INT64)
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % (2 * _INT64)
    return (mixed ^ mixed >> 31) | 1


def _parts_of(data: memoryview, sizes: list[int] | None) -> list[memoryview]:
    ends = list(itertools.accumulate(sizes or ()))
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _ended(work: Any, until: float | None) -> bool:
    """Waits for one slice; raises the failure of the operation."""
    left = _SLICE_SECONDS if until is None else until - time.monotonic()
    try:
        work.wait(datetime.timedelta(seconds=max(0.001, min(_SLICE_SECONDS, left))))
    except RuntimeError:
        if not work.is_completed():
            return False
        work.wait()  # completed just now, or failed: then this raises why
    return True


def _copied(*parts: memoryview) -> torch.Tensor:
    """Bytes back to back in memory of torch, which does not take the GIL when it is freed."""
    copied = torch.empty(sum(len(part) for part in parts), dtype=torch.uint8)
    room, position = memoryview((ctypes.c_ubyte * len(copied)).from_address(copied.data_ptr())).cast("B"), 0
    for part in parts:
        room[position:position + len(part)] = part
        position += len(part)
    return copied


def _fill(out: memoryview, data: torch.Tensor) -> None:
    if len(out):
        torch.frombuffer(out, dtype=torch.uint8).copy_(data)
