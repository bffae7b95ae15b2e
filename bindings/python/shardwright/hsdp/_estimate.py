# SPDX-License-Identifier: Apache-2.0
"""What memory an iteration will need, before anything is allocated."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._library import native
from .._options import word
from . import memory, settings
from .unit import Param, described

_ROOT, _ADDS_GRADS, _HOST_MEMORY, _ORDERED_SUMS = 1, 2, 4, 1


@dataclass
class EstimatedUnit:
    """A unit whose memory is foretold. Parameters need no tensors.

    Args:
        root: its forward and backward are around those of all others; of the first unit only.
        adds_grads: the host hands gradients in to be added, so that they are summed in memory of the library.
        host_memory: whole parameters lie in memory of the host.
        others: as for Hsdp.unit.
    """

    params: Sequence[Param]
    root: bool = False
    adds_grads: bool = False
    host_memory: bool = False
    param_dtype: str | None = None
    reduce_dtype: str | None = None
    grad_dtype: str | None = None
    layout: str = "row"
    reshard_after_forward: bool | int | None = None
    unused: str = "zero"
    offload: bool = False


def estimate(units: Sequence[EstimatedUnit], shards: int, replicas: int = 1, *, kind: str | None = None, prefetch_depth: int = 1,
             prefetch_bytes_max: int = 0, max_inflight_reduce: int = 1, lanes: int = 0,
             ordered_sums: bool = False) -> memory.Memory:
    """What `Hsdp.stats` of one rank would say after iterations in which the units run forward in this order and backward in the
    reverse one, and gradients are dropped before the next: exactly, but for padding, and without what a transport allocates.

    Args:
        shards, replicas: ranks along the axes of the mesh; 1 = there is none.
        kind: what the memory is for (see Hsdp.stats); None = all.
        ordered_sums: communicators add in rank order by themselves, as those of threads do.
        others: as for Hsdp.
    Raises InvalidArgumentError.
    """
    rows = []
    for each in units:
        columns, rules = described(each.params)
        fields = settings.unit_fields(param_dtype=each.param_dtype, reduce_dtype=each.reduce_dtype, output_dtype=None,
                                      grad_dtype=each.grad_dtype, layout=each.layout,
                                      reshard_after_forward=each.reshard_after_forward, unused=each.unused,
                                      offload=each.offload, host_memory=each.host_memory)
        flags = _ROOT * each.root + _ADDS_GRADS * each.adds_grads + _HOST_MEMORY * each.host_memory
        rows.append((columns, rules, fields, flags))
    world = {"shard_size": shards, "replicate_size": replicas, "flags": _ORDERED_SUMS * ordered_sums}
    options = {"shard_axis": -1 if shards == 1 else 0, "replicate_axis": -1 if replicas == 1 else 1, "lanes": lanes,
               "max_inflight_reduce": max_inflight_reduce, "prefetch_depth": prefetch_depth or -1,
               "prefetch_bytes_max": prefetch_bytes_max}
    number = memory.ALL if kind is None else word("kind", kind, memory.KINDS)
    return memory.Memory.of(native.shw_py_hsdp_estimate(rows, world, options, number))
