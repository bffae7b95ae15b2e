# SPDX-License-Identifier: Apache-2.0
"""Communicators: collectives over elements of tensors, asynchronous; what HSDP gathers and reduces with."""
from __future__ import annotations

from typing import Any

from .._library import native
from .._options import nanoseconds
from ..collective import handle_of
from ..context import Context, shared
from ..tensor import dtype_number
from .work import Work

_REDUCTIONS = {"sum": 0, "average": 1, "scaled_sum": 2, "max": 3, "min": 4}


class Communicator:
    """One rank's end of a transport; used by one thread at a time, abort aside. Made by the functions of this module."""

    def __init__(self, handle: Any) -> None:
        self._handle: Any = handle
        self._sequence = 0

    @property
    def rank(self) -> int:
        """Rank of this end, from 0."""
        return int(native.shw_communicator_rank(self._handle))

    @property
    def size(self) -> int:
        """Number of ranks."""
        return int(native.shw_communicator_size(self._handle))

    @property
    def name(self) -> str:
        """Name of the transport."""
        return str(native.shw_communicator_name(self._handle))

    @property
    def capabilities(self) -> int:
        """Bits as in the C header communicator_table.h (SHW_COMMUNICATOR_)."""
        return int(native.shw_communicator_capabilities(self._handle))

    def all_gather(self, data: Any, out: Any, *, timeout: float | None = None) -> Work:
        """Gathers the elements of `data` of all ranks into `out`, in rank order. Arrays are contiguous and of one dtype, here and
        below; `timeout` in seconds, None = 1,800."""
        return self._issue("all_gather", data, out, data.size, timeout)

    def all_to_all(self, data: Any, out: Any, *, timeout: float | None = None) -> Work:
        """Sends each rank its part of `data`; `out` gets what each has for this one. Parts are equal, in rank order."""
        return self._issue("all_to_all", data, out, data.size // self.size, timeout)

    def reduce_scatter(self, data: Any, out: Any, *, op: str = "sum", scale: float = 1.0, timeout: float | None = None) -> Work:
        """Reduces each part of `data` over all ranks in rank order; `out` gets the one of this rank. op: "sum", "average",
        "scaled_sum", "max", "min"."""
        return self._issue("reduce_scatter", data, out, out.size, timeout, op=op, scale=scale)

    def all_reduce(self, data: Any, *, op: str = "sum", scale: float = 1.0, timeout: float | None = None) -> Work:
        """Reduces `data` over all ranks, in place."""
        return self._issue("all_reduce", None, data, data.size, timeout, op=op, scale=scale)

    def broadcast(self, data: Any, root: int, *, timeout: float | None = None) -> Work:
        """Fills `data` with that of the root."""
        return self._issue("broadcast", None, data, data.size, timeout, root=root)

    def barrier(self, *, timeout: float | None = None) -> Work:
        """Ends when all ranks have called it."""
        return self._issue("barrier", None, None, 0, timeout)

    def _issue(self, name: str, data: Any, out: Any, count: int, timeout: float | None, *, op: str = "sum", scale: float = 1.0,
               root: int = 0) -> Work:
        self._sequence += 1
        dtype = 0 if out is None else dtype_number(str(out.dtype))
        limit = 0 if timeout is None else nanoseconds("timeout", timeout)
        call = (self._sequence, 0, count, dtype, _REDUCTIONS.get(op, -1), scale, limit, 0)
        return Work(native.shw_py_communicator_issue(self._handle, name, call, (data, out, root)), (self, data, out))

    def abort(self, message: str, code: int = 10) -> None:
        """Wakes all ranks that wait, and ends the communicator; they fail with the code (a status number) and message."""
        native.shw_communicator_abort(self._handle, code, message)

    def close(self) -> None:
        """Releases this end; meshes and works that use it keep it alive. Twice is fine."""
        native.shw_py_close(self._handle)

    def __reduce__(self) -> Any:
        raise TypeError("a communicator is not pickled; make one in each process")


class PluginCommunicator(Communicator):
    """A communicator of a plugin, made from text that the plugin understands."""

    def __init__(self, plugin: str, config: str = "", *, context: Context | None = None) -> None:
        owner = context or shared()
        super().__init__(native.shw_context_open_communicator(owner._handle, plugin, config))


def thread_communicators(size: int) -> list[Communicator]:
    """Communicators of `size` ranks in this process, each for a thread of its own. InvalidArgumentError."""
    group = native.shw_communicator_group_create(size)
    members = [Communicator(native.shw_communicator_group_member(group, rank)) for rank in range(size)]
    native.shw_py_close(group)
    return members


def fake_communicator(rank: int, size: int) -> Communicator:
    """One rank of `size` that moves nothing and always succeeds. InvalidArgumentError."""
    return Communicator(native.shw_communicator_create_fake(rank, size))


def delayed(inner: Communicator, latency: float, bytes_per_second: float = 0.0) -> Communicator:
    """A communicator behind an emulated link: operations end `latency` seconds after their bytes have come at that rate (0 = at
    once). InvalidArgumentError."""
    return Communicator(native.shw_communicator_create_delay(inner._handle, round(latency * 1e9), bytes_per_second))


def over(collective: Any) -> Communicator:
    """A communicator over a collective, or over a Python object with the methods of HostCollective. Works everywhere, waits for
    other ranks where an operation is issued."""
    return Communicator(native.shw_communicator_create_over(handle_of(collective)))
