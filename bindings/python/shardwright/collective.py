# SPDX-License-Identifier: Apache-2.0
"""Collectives: the host's transport between ranks, as operations on bytes that all ranks call in the same order."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol, runtime_checkable

from ._library import native
from .context import Context, shared

_REDUCTIONS = {"min": 0, "max": 1, "sum": 2}


class Collective:
    """One rank's end of a transport; used by one thread at a time. Base of the classes below."""

    def __init__(self, handle: Any) -> None:
        self._handle: Any = handle

    @property
    def rank(self) -> int:
        """Rank of this end, from 0."""
        return int(native.shw_collective_rank(self._handle))

    @property
    def size(self) -> int:
        """Number of ranks."""
        return int(native.shw_collective_size(self._handle))

    @property
    def name(self) -> str:
        """Name of the transport."""
        return str(native.shw_collective_name(self._handle))

    def barrier(self) -> None:
        """Waits until all ranks are here."""
        native.shw_py_collective_call(self._handle, "barrier", ())

    def broadcast(self, data: bytes, root: int) -> bytes:
        """The root's bytes, of equal size on all ranks."""
        found: bytes = native.shw_py_collective_call(self._handle, "broadcast", (bytes(data), root))
        return found

    def all_gather(self, data: bytes, sizes: Sequence[int] | None = None) -> bytes:
        """Bytes of all ranks in rank order; `sizes` when they are not equal."""
        arguments = (bytes(data), None if sizes is None else list(sizes))
        found: bytes = native.shw_py_collective_call(self._handle, "all_gather", arguments)
        return found

    def gather(self, data: bytes, sizes: Sequence[int] | None = None, root: int = 0) -> bytes:
        """Bytes of all ranks in rank order at the root, which knows their `sizes`; elsewhere nothing."""
        arguments = (bytes(data), None if sizes is None else list(sizes), root)
        found: bytes = native.shw_py_collective_call(self._handle, "gather", arguments)
        return found

    def scatter(self, parts: Sequence[bytes], size: int, root: int = 0) -> bytes:
        """This rank's part of `size` bytes; the root has one part per rank, the others none."""
        sizes = [len(part) for part in parts] if parts else None
        found: bytes = native.shw_py_collective_call(self._handle, "scatter", (b"".join(parts), sizes, size, root))
        return found

    def all_to_all(self, parts: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
        """What each rank has for this one: `sizes[rank]` bytes. Each rank gets its one of `parts`, one per rank, in turn.
        Sizes that are not those of the parts are InvalidArgumentError on all ranks."""
        expected = list(sizes)
        arguments = (b"".join(parts), [len(part) for part in parts], expected)
        found: bytes = native.shw_py_collective_call(self._handle, "all_to_all", arguments)
        ends = list(accumulate(expected))
        return [found[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]

    def all_reduce_i64(self, values: Sequence[int], operation: str) -> tuple[int, ...]:
        """Element-wise "min", "max" or "sum" of up to 64 integers over all ranks."""
        found: tuple[int, ...] = native.shw_py_collective_call(self._handle, "all_reduce_i64",
                                                               (list(values), _REDUCTIONS[operation]))
        return found

    def abort(self, message: str, code: int = 10) -> None:
        """Wakes all ranks that wait in this collective; they fail with the code (a status number) and message."""
        native.shw_collective_abort(self._handle, code, message)

    def close(self) -> None:
        """Releases this end; jobs that use it keep it alive. Twice is fine."""
        native.shw_py_close(self._handle)

    def __enter__(self) -> Collective:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a collective is not pickled; make one in each process")


class SingleCollective(Collective):
    """The collective of a single rank."""

    def __init__(self) -> None:
        super().__init__(native.shw_collective_create_single())


class NodeCollective(Collective):
    """The ranks of another collective through the memory of their machine, where all of them run on one (2 to 64 ranks of one
    user that reach each other's memory); else the transport of that one. An operation takes some microseconds there. All ranks
    make it together, each with its end, which is used through this one alone from then on. `timeout`: seconds that the ranks
    may take to meet, None = 1,800. ShardwrightError."""

    def __init__(self, inner: Collective, timeout: float | None = None) -> None:
        timeout_ns = 0 if timeout is None else max(1, round(timeout * 1e9))
        super().__init__(native.shw_py_collective_create_node(inner._handle, timeout_ns))


def thread_collectives(size: int) -> list[Collective]:
    """Collectives of `size` ranks in this process, each for a thread of its own. InvalidArgumentError."""
    group = native.shw_collective_group_create(size)
    members = [Collective(native.shw_collective_group_member(group, rank)) for rank in range(size)]
    native.shw_py_close(group)
    return members


class PluginCollective(Collective):
    """A collective of a plugin, made from text that the plugin understands."""

    def __init__(self, plugin: str, config: str = "", *, context: Context | None = None) -> None:
        owner = context or shared()
        super().__init__(native.shw_context_open_collective(owner._handle, plugin, config))


@runtime_checkable
class HostCollective(Protocol):
    """What a Python object needs to be a collective. `timeout` is in seconds, None = no limit. Views end with the call.
    Errors of shardwright.errors keep their meaning; any other exception comes out of the call that caused it.
    Optional: `name`, `close()`, and on all ranks or on none `gather_v(data, out, sizes, root, timeout)` and
    `scatter_v(parts, sizes, data, root, timeout)`: the root has the bytes of all ranks (`out`, `parts`) and their `sizes`;
    elsewhere the first is empty and `sizes` is None. Likewise `all_to_all_v(data, data_sizes, out, out_sizes, timeout)`:
    `data` has what goes to each rank and `out` room for what comes from each, this rank included, back to back in rank
    order; both have one size per rank. Without them every rank receives the bytes of all."""

    rank: int
    size: int

    def barrier(self, timeout: float | None) -> None:
        """Waits until all ranks are here."""

    def broadcast(self, data: memoryview, root: int, timeout: float | None) -> None:
        """Fills `data` with the root's bytes; equal size on all ranks."""

    def all_gather(self, data: memoryview, out: memoryview, timeout: float | None) -> None:
        """Fills `out` with the bytes of all ranks, of equal size, in rank order."""

    def all_gather_v(self, data: memoryview, out: memoryview, sizes: list[int], timeout: float | None) -> None:
        """The same with `sizes[rank]` bytes of each rank, back to back."""

    def all_reduce_i64(self, values: memoryview, operation: str, timeout: float | None) -> None:
        """Reduces a view of int64 in place: "min", "max" or "sum" (OutOfRangeError where it does not fit)."""

    def abort(self, code: int, message: str) -> None:
        """Wakes all ranks that wait, as far as the transport can."""


class CustomCollective(Collective):
    """A collective made of a Python object with the methods of HostCollective."""

    def __init__(self, host: HostCollective) -> None:
        super().__init__(native.shw_py_collective_create(host))


def handle_of(collective: Any) -> Any:
    """Native handle of a collective argument: None, a Collective, or a Python object with the methods of one."""
    if collective is None:
        return None
    if isinstance(collective, Collective):
        return collective._handle
    return CustomCollective(collective)._handle


def rank_of(collective: Any) -> int:
    """Rank of a collective argument; 0 for None."""
    return 0 if collective is None else int(collective.rank)
