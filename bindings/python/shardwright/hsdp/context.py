# SPDX-License-Identifier: Apache-2.0
"""Hsdp: the units that train together on one rank."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._library import native
from .._options import nanoseconds, word
from ..context import Context, shared
from ..state import State
from . import memory, settings
from ._interrupts import waiting
from .device import Device
from .mesh import Mesh
from .settings import ContextSettings
from .unit import Unit

_CONTENT = {"params": 0, "grads": 1}


class Hsdp:
    """Units over one mesh. Calls come from any thread, one at a time, and in the same order on all ranks.

    A wait that fails ends the context on all ranks: what is pending raises the first cause, other calls
    FailedPreconditionError with it, until `reset` with new communicators in the mesh. So does Ctrl-C in a call that waits, on the
    main thread: it raises KeyboardInterrupt, and CancelledError on the other ranks. `Work.wait` may be called again after it.

    Args:
        mesh: with its communicators.
        context: memory, log and plugins; None = the shared one.
        device: where all units have their memory; None = the host.
        shard_axis: axis over which parameters are sharded; None = whole on each rank.
        replicate_axis: axis over which they are replicated.
        lanes: work beside the caller: 0 none, 1 one lane for all, 3 one each for gathers, reductions, sums over replicas.
        max_inflight_reduce: packed gradients that live at once.
        prefetch_depth: units gathered ahead; 0 none. `prefetch_bytes_max`: their bytes, 0 = no limit.
        unordered: communicators may sum in an order of their own; results then depend on it.
        order_guard_steps: first iterations after which ranks compare what they issued; 0 none.
        timeout: seconds of each collective; None = 1,800.
        settle: called before each call in which the library reads or writes memory that it shares with the host, or may use such
            memory anew: a host with streams waits there until what it has put on them has ended. None = that has ended by then.
    Raises InvalidArgumentError; FailedPreconditionError where an axis of several ranks has no communicator.
    """

    def __init__(self, mesh: Mesh, *, context: Context | None = None, device: Device | None = None,
                 shard_axis: int | None = 0, replicate_axis: int | None = None, lanes: int = 0, max_inflight_reduce: int = 1,
                 prefetch_depth: int = 1, prefetch_bytes_max: int = 0, unordered: bool = False, order_guard_steps: int = 3,
                 timeout: float | None = None, settle: Callable[[], None] | None = None) -> None:
        shard = -1 if shard_axis is None else shard_axis
        fields = {"mesh": mesh._handle, "shard_axis": shard, "replicate_axis": -1 if replicate_axis is None else replicate_axis,
                  "lanes": lanes, "max_inflight_reduce": max_inflight_reduce, "prefetch_depth": prefetch_depth or -1,
                  "prefetch_bytes_max": prefetch_bytes_max, "order_guard_steps": order_guard_steps or -1,
                  "timeout_ns": 0 if timeout is None else nanoseconds("timeout", timeout), "flags": int(unordered)}
        if device is not None:
            fields["device"] = device._handle
        self._handle: Any = native.shw_hsdp_create((context or shared())._handle, fields)
        self.mesh = mesh
        self.device = device
        self._settle = settle
        self.units: list[Unit] = []

    def unit(self, name: str, *, param_dtype: str | None = None, reduce_dtype: str | None = None, output_dtype: str | None = None,
             grad_dtype: str | None = None, layout: str = "row", reshard_after_forward: bool | int | None = None,
             unused: str = "zero", offload: bool = False, host_memory: bool = False) -> Unit:
        """Makes a unit; its name is for messages, and equal on all ranks.

        Args:
            param_dtype: in which parameters are gathered; reduce_dtype: in which gradients are summed; grad_dtype: of the
                gradient of the shard; None = as stored (reduce_dtype: grad_dtype). output_dtype is kept for the host.
            layout: "row", each parameter cut along one dimension; "ragged", all one range of rows that is cut evenly.
            reshard_after_forward: True, False, None = True except at the root, n = each rank keeps 1/n.
            unused: what a parameter without a gradient adds: "zero", or "skip" on which ranks must agree.
            offload: shards and their gradients stay in memory of the host, so that arrays reach them on every device.
            host_memory: whole parameters lie in memory given by `Unit.set_memory`.
        """
        fields = settings.unit_fields(param_dtype=param_dtype, reduce_dtype=reduce_dtype, output_dtype=output_dtype,
                                      grad_dtype=grad_dtype, layout=layout, reshard_after_forward=reshard_after_forward,
                                      unused=unused, offload=offload, host_memory=host_memory)
        made = Unit(native.shw_hsdp_unit_create(self._handle, name, fields), name, self)
        self.units.append(made)
        return made

    def finalize_backward(self) -> None:
        """The backward is over: reduces what was not reduced yet, and in the last backward of an iteration waits for all.
        AbortedError naming the first unit that ranks ran in different orders."""
        self._wait(native.shw_hsdp_finalize_backward, self._handle)
        self._forget_taken()

    def step_event(self) -> None:
        """Parameters of the shards have changed, and what wrote them has ended: what was gathered before is of no use. Shards of a
        unit that is being gathered stay as they are, so a host that may have asked for that calls this before the change, too."""
        self._hand_over()
        native.shw_hsdp_step_event(self._handle, 0)
        self._forget_taken()

    def reset(self) -> None:
        """Recovery, on all ranks: gives up what is under way, drops all gradients and what was gathered. After a failure the mesh
        needs new communicators first."""
        self._hand_over()
        native.shw_hsdp_reset(self._handle)
        self._forget_taken()

    def global_norm(self, p: float = 2.0) -> float:
        """Norm of order `p` of the gradients of all shards, replicas counted once; equal on all ranks."""
        found: float = self._wait(native.shw_hsdp_global_norm, self._handle, p)
        return found

    def scale_grads(self, factor: float) -> None:
        """Multiplies all gradients of the shards."""
        self._hand_over()
        native.shw_hsdp_scale_grads(self._handle, factor)

    def zero_grads(self) -> None:
        """Drops all gradients of the shards."""
        self._hand_over()
        native.shw_hsdp_zero_grads(self._handle)

    def set(self, **values: Any) -> None:
        """Sets values of the context (max_inflight_reduce, prefetch_depth, is_last_backward), or of all units (see Unit.set)."""
        for name, value in values.items():
            key = settings.key_of_context(name)
            if key is not None:
                number = -1 if name == "prefetch_depth" and not value else int(value)
                native.shw_hsdp_set_i64(self._handle, key, number)
                continue
            for unit_key, number_of in settings.keys_of(name, value):
                call = native.shw_hsdp_set_f64 if unit_key == settings.DIVIDE_FACTOR else native.shw_hsdp_set_i64
                call(self._handle, unit_key, number_of)

    def settings(self) -> ContextSettings:
        """What it is set to now; units have settings of their own."""
        inflight, depth, is_last = (native.shw_hsdp_get_i64(self._handle, key) for key in settings.CONTEXT_KEYS)
        return ContextSettings(inflight, depth, bool(is_last))

    def add_to_state(self, state: State, prefix: str = "", what: str = "params") -> None:
        """Adds what this rank holds of all sealed units, "params" or "grads", under `prefix`; the state keeps the context alive.
        After a load into it call `step_event`. FailedPreconditionError where gradients still travel."""
        native.shw_hsdp_add_to_state(self._handle, prefix, word("what", what, _CONTENT), state._handle)

    def stats(self, kind: str | None = None) -> memory.Memory:
        """Memory that is and was held for one kind of buffer ("shard", "gathered", "params", ...), None = all."""
        number = memory.ALL if kind is None else word("kind", kind, memory.KINDS)
        return memory.Memory.of(native.shw_hsdp_stats(self._handle, number))

    def close(self) -> None:
        """Releases the context: what is under way is given up, and other ranks that wait for it are told. Twice is fine."""
        for unit in self.units:
            unit.close()
        native.shw_py_close(self._handle)

    def _wait(self, call: Callable[..., Any], *args: Any) -> Any:
        """A call that may wait for other ranks."""
        self._hand_over()
        return waiting(self.mesh._cancel, call, *args)

    def _hand_over(self) -> None:
        """What the host has put on streams has ended."""
        if self._settle is not None:
            self._settle()

    def _forget_taken(self) -> None:
        for unit in self.units:
            unit._forget_taken()

    def __enter__(self) -> Hsdp:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
