# SPDX-License-Identifier: Apache-2.0
"""What is done to a state dict before planning: meta tensors get memory before a load, and ShardedTensors whose local
shard is a ShardedTensor itself (two-dimensional parallelism of old) become simple ones.
"""
from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed._shard.metadata import ShardMetadata
from torch.distributed._shard.sharded_tensor.api import ShardedTensor
from torch.distributed._shard.sharded_tensor.shard import Shard
from torch.distributed.tensor import DTensor

from ....errors import FailedPreconditionError
from ._errors import InvalidPlanError
from ._nested import leaves, set_element
from ._values import _PLACED_ATTRIBUTES, is_placed_tensor

_META = torch.device("meta")


def _device() -> torch.device:
    """Where meta tensors go: the current device of the default group, the host without a group."""
    if not (dist.is_available() and dist.is_initialized()):
        return torch.device("cpu")
    kind = dist.distributed_c10d._get_pg_default_device().type
    if kind == "cpu":
        return torch.device("cpu")
    return torch.device(kind, torch.get_device_module(kind).current_device())


def _with_memory(value: torch.Tensor) -> torch.Tensor:
    if isinstance(value, ShardedTensor):
        raise FailedPreconditionError(f"Found unsupported type {type(value)} for meta device loading.")
    if isinstance(value, DTensor):
        local = torch.empty_like(value.to_local(), device=_device())
        return DTensor.from_local(local, device_mesh=value.device_mesh, placements=value.placements,
                                  shape=value.size(), stride=value.stride())
    made = torch.empty_like(value, device=_device())
    if is_placed_tensor(value):
        for name in _PLACED_ATTRIBUTES:
            setattr(made, name, getattr(value, name))
    return made


def materialise_meta_tensors(value: Any) -> Any:
    """Gives every meta tensor memory: in place in dicts; lists and tuples that hold one are replaced. Values of types
    that the walk does not know stay what they are. Gives what stands in the place of `value`."""
    if isinstance(value, (torch.Tensor, ShardedTensor)):
        return _with_memory(value) if getattr(value, "device", None) == _META else value
    if isinstance(value, dict):
        for key, inner in value.items():
            made = materialise_meta_tensors(inner)
            if made is not inner:
                value[key] = made
    elif type(value) in (list, tuple):
        made = [materialise_meta_tensors(inner) for inner in value]
        if any(new is not old for new, old in zip(made, value, strict=True)):
            return type(value)(made)
    return value


def _added(a: Any, b: Any) -> list[int]:
    return [first + second for first, second in zip(a, b, strict=True)]


def _as_one(outer: Any, inner: Any, value: Any) -> ShardedTensor:
    """The ShardedTensor of summed offsets for an outer shard whose tensor is the ShardedTensor of `inner`."""
    mine = inner.local_shards()[0]
    rank = dist.get_rank()
    other = f"rank:{0 if rank > 0 else 1}/"
    device = mine.tensor.device
    elsewhere = other + ("cpu" if device.type == "cpu" else f"{device.type}:0")
    base = outer.metadata.shard_offsets
    own = ShardMetadata(shard_offsets=_added(base, mine.metadata.shard_offsets), shard_sizes=mine.metadata.shard_sizes,
                        placement=f"rank:{rank}/{device}")
    outside = [ShardMetadata(shard_offsets=s.shard_offsets, shard_sizes=s.shard_sizes, placement=elsewhere)
               for s in value.metadata().shards_metadata if s.shard_offsets != base]
    beside = [ShardMetadata(shard_offsets=_added(base, s.shard_offsets), shard_sizes=s.shard_sizes, placement=elsewhere)
              for s in inner.metadata().shards_metadata if s.shard_offsets != mine.metadata.shard_offsets]
    whole = copy.deepcopy(value.metadata())
    whole.shards_metadata = [*outside, *beside, own]
    return ShardedTensor._init_from_local_shards_and_global_metadata(
        local_shards=[Shard(tensor=mine.tensor, metadata=own)], sharded_tensor_metadata=whole)


def flatten_sharded_tensors(state_dict: Mapping[Any, Any]) -> dict[str, Any]:
    """The dict with nested ShardedTensors made simple ones, rebuilt along its paths: keys become text, empty mappings
    and ShardedTensors without a local shard vanish. InvalidPlanError for an inner one with several local shards."""
    rebuilt: dict[str, Any] = {}
    for path, value in leaves(state_dict):
        found = value
        if isinstance(value, ShardedTensor):
            shards = value.local_shards()
            if not shards:
                continue
            inner = shards[0].tensor
            if len(shards) == 1 and isinstance(inner, ShardedTensor):
                if len(inner.local_shards()) != 1:
                    raise InvalidPlanError("Cannot handle inner tensor with more than 1 shard")
                found = _as_one(shards[0], inner, value)
        if len(path) == 1:
            rebuilt[path[0]] = found  # type: ignore[index]  # the first part of a path is text
        else:
            set_element(rebuilt, path, found)
    return rebuilt
