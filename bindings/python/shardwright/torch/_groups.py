# SPDX-License-Identifier: Apache-2.0
"""Process groups as transport: byte operations on CPU tensors over Gloo.

Waits are cut into slices. Between two slices a rank looks whether another one has given up: that is told through the
store of torch.distributed, under a key of this call, because Gloo itself cannot wake a peer. Background work gets a
process group of its own, made once per group, as two threads must not share one.
"""
from __future__ import annotations

import datetime
import json
import time
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from ..collective import Collective
from ..errors import AbortedError, DeadlineExceededError, OutOfRangeError, ShardwrightError, from_native

_SLICE_SECONDS = 0.5
_INT64 = 2**63
_made: dict[tuple[str, str], tuple[dist.ProcessGroup, dist.ProcessGroup]] = {}
_calls: dict[str, int] = {}


def _serves_cpu(group: dist.ProcessGroup) -> bool:
    try:
        return bool(group._get_backend(torch.device("cpu")).name() == "gloo")
    except RuntimeError:
        return False


def _side_group(group: dist.ProcessGroup, use: str) -> dist.ProcessGroup:
    key = (use, group.group_name)
    known = _made.get(key)
    if known is not None and known[0] is group:
        return known[1]
    ranks = dist.get_process_group_ranks(group)
    made = dist.new_group(ranks, backend="gloo", use_local_synchronization=True)
    assert isinstance(made, dist.ProcessGroup)
    _made[key] = (group, made)
    return made


def transport_group(group: dist.ProcessGroup) -> dist.ProcessGroup:
    """The group itself where it carries CPU tensors over Gloo, else one beside it."""
    return group if _serves_cpu(group) else _side_group(group, "calls")


def background_group(group: dist.ProcessGroup) -> dist.ProcessGroup:
    """A Gloo group of the same ranks for background work. The first call is collective."""
    return _side_group(group, "background")


def agree(end: Collective, problem: ShardwrightError | None) -> None:
    """Collective: returns where no rank has a problem; raises that of the lowest rank that has one, on the others."""
    code = 0 if problem is None else problem.code
    if end.all_reduce_i64([code], "max")[0] == 0:
        return
    text = "" if problem is None else str(problem)
    mine = json.dumps([code, text]).encode()
    packed = end.all_gather(len(mine).to_bytes(8, "little"))
    sizes = [int.from_bytes(packed[at:at + 8], "little") for at in range(0, len(packed), 8)]
    gathered, position = end.all_gather(mine, sizes), 0
    for rank, size in enumerate(sizes):
        its_code, its_text = json.loads(gathered[position:position + size])
        position += size
        if its_code and problem is None:
            raise from_native(its_code, f"rank {rank} could not take its state: {its_text}", [("rank", str(rank))], 0, None)


class GroupTransport:
    """The methods of HostCollective over one process group, for one call."""

    name = "torch.distributed"

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group = group
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)
        number = _calls[group.group_name] = _calls.get(group.group_name, 0) + 1
        self._abort_key = f"shardwright/{group.group_name}/{number}/abort"
        self._store: Any = c10d._get_default_store()

    def barrier(self, timeout: float | None) -> None:
        """Waits until all ranks are here."""
        self._wait(dist.all_reduce(torch.zeros(1, dtype=torch.uint8), group=self._group, async_op=True), "barrier", timeout)

    def broadcast(self, data: memoryview, root: int, timeout: float | None) -> None:
        """Fills `data` with the root's bytes."""
        if len(data):
            tensor = torch.frombuffer(data, dtype=torch.uint8)
            self._wait(dist.broadcast(tensor, group=self._group, group_src=root, async_op=True), "broadcast", timeout)

    def all_gather(self, data: memoryview, out: memoryview, timeout: float | None) -> None:
        """Gathers equal sizes."""
        if len(data):
            gathered = torch.frombuffer(out, dtype=torch.uint8)
            work = dist.all_gather_into_tensor(gathered, _copied(data), group=self._group, async_op=True)
            self._wait(work, "all_gather", timeout)

    def all_gather_v(self, data: memoryview, out: memoryview, sizes: list[int], timeout: float | None) -> None:
        """Gathers sizes that differ, padded to the largest one."""
        largest = max(sizes)
        if largest == 0:
            return
        padded = torch.zeros(largest, dtype=torch.uint8)
        if len(data):
            padded[:len(data)] = _copied(data)
        gathered = torch.empty(largest * self.size, dtype=torch.uint8)
        work = dist.all_gather_into_tensor(gathered, padded, group=self._group, async_op=True)
        self._wait(work, "all_gather_v", timeout)
        position = 0
        view: Any = gathered.numpy()
        for rank, size in enumerate(sizes):
            out[position:position + size] = memoryview(view[rank * largest:rank * largest + size])
            position += size

    def all_reduce_i64(self, values: memoryview, operation: str, timeout: float | None) -> None:
        """Reduces in place; sums are formed without wrapping."""
        if not len(values):
            return
        mine = torch.tensor(list(values), dtype=torch.int64)
        gathered = torch.empty(self.size * len(values), dtype=torch.int64)
        work = dist.all_gather_into_tensor(gathered, mine, group=self._group, async_op=True)
        self._wait(work, "all_reduce", timeout)
        columns = zip(*gathered.reshape(self.size, -1).tolist(), strict=True)
        reductions: dict[str, Any] = {"min": min, "max": max, "sum": sum}
        for index, column in enumerate(columns):
            result = int(reductions[operation](column))
            if not -_INT64 <= result < _INT64:
                raise OutOfRangeError(f"sum {result} over {self.size} ranks does not fit into 64 bits")
            values[index] = result

    def abort(self, code: int, message: str) -> None:
        """Tells the other ranks; they see it within a slice."""
        self._store.set(self._abort_key, json.dumps([code, message]))

    def _check_abort(self) -> None:
        if self._store.check([self._abort_key]):
            code, message = json.loads(self._store.get(self._abort_key))
            raise from_native(code, message, (), 0, None)

    def _wait(self, work: Any, operation: str, timeout: float | None) -> None:
        begin = time.monotonic()
        while True:
            left = _SLICE_SECONDS if timeout is None else timeout - (time.monotonic() - begin)
            span = datetime.timedelta(seconds=max(0.001, min(_SLICE_SECONDS, left)))
            try:
                work.wait(span)
                return
            except RuntimeError as e:
                if work.is_completed():
                    self._check_abort()
                    raise AbortedError(f"rank {self.rank}: {operation} over the process group failed: {e}",
                                       retryable=True) from e
            self._check_abort()
            if timeout is not None and time.monotonic() - begin >= timeout:
                raise DeadlineExceededError(f"rank {self.rank}: {operation} of {self.size} ranks did not end within "
                                            f"{timeout:g} s", {"rank": str(self.rank)})

    def close(self) -> None:
        """Lets go of the group."""
        self._group = None  # type: ignore[assignment]


def _copied(data: memoryview) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)
