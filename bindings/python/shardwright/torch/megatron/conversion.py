# SPDX-License-Identifier: Apache-2.0
"""Grouped sharded state dicts as dicts that torch's checkpoint saves and loads. Descriptors are never changed.

What the original enumerates, the whole grid of every tensor with prepended axes on every rank, is not needed by
planners: only local boxes are described.
"""
from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed._shard.metadata import ShardMetadata
from torch.distributed._shard.sharded_tensor.api import ShardedTensor, ShardedTensorBase
from torch.distributed._shard.sharded_tensor.metadata import ShardedTensorMetadata, TensorProperties
from torch.distributed._shard.sharded_tensor.shard import Shard
from torch.distributed._shard.sharding_spec.api import ShardingSpec

from .. import _stored_objects
from ._allowed_types import allowed_types
from .checkpointable import CheckpointableShardedTensor, LocalShard, LocalShardsContainer, _Boxes, boxes_of
from .errors import ShardingError, failure, require
from .high_precision import dequantised
from .kinds import is_sharded_object, is_sharded_tensor
from .sharded_tensor import check_sharded_tensor, data_shape


def mcore_to_pyt_state_dict(state_dict: Mapping[str, Sequence[Any]], is_loading: bool = False,
                            init_device: torch.device | str = "cpu",
                            load_legacy_1d_flatten_tensors: bool = False) -> dict[str, Any]:
    """Values for torch's checkpoint by global name.

    Args:
        state_dict: what _replace_state_dict_keys_with_sharded_keys grouped.
        is_loading: tensors without data are allocated on `init_device`; those with allow_shape_mismatch are filled with
            zeros, also where the caller's data is the destination. Objects are placeholders: their present values are
            not serialised.
        load_legacy_1d_flatten_tensors: accepted; a flattened one-dimensional shard is always a part of a
            one-dimensional tensor here.
    Raises:
        CheckpointingException: a tensor to save has no data, or a descriptor contradicts itself.
        ShardingAssertionError: a tensor and an object have one name.
    """
    return {name: _converted(name, leaves, is_loading, init_device) for name, leaves in state_dict.items()}


def _converted(name: str, leaves: Sequence[Any], is_loading: bool, device: torch.device | str) -> Any:
    if is_sharded_tensor(leaves[0]):
        require(all(is_sharded_tensor(leaf) for leaf in leaves), f"{name} is a tensor and an object", key=name)
        shards = [LocalShard(leaf, _destination(leaf, device) if is_loading else _source(leaf)) for leaf in leaves]
        if len(shards) == 1:
            return CheckpointableShardedTensor(shards[0].data, shards[0].descriptor)
        return LocalShardsContainer(shards)
    require(all(is_sharded_object(leaf) for leaf in leaves), f"{name} is an object and something else", key=name)
    packed = io.BytesIO()
    if not is_loading:
        _stored_objects.write([leaf.data for leaf in leaves], name, packed, allowed_types())
    return packed


def _source(leaf: Any) -> torch.Tensor:
    if leaf.data is None:
        raise failure(ShardingError, f"`data` attr is None for {leaf}", key=leaf.key)
    check_sharded_tensor(leaf)
    data: torch.Tensor = dequantised(leaf.data).detach()
    return data


def _destination(leaf: Any, device: torch.device | str) -> torch.Tensor:
    check_sharded_tensor(leaf)
    if leaf.data is None:
        make = torch.zeros if leaf.allow_shape_mismatch else torch.empty
        return make(data_shape(leaf), dtype=leaf.dtype, device=device)
    data: torch.Tensor = leaf.data.detach()
    return data.zero_() if leaf.allow_shape_mismatch else data


class _LocalBoxesSpec(ShardingSpec):
    """Sharding of a torch ShardedTensor of which only the shards of this rank are known."""

    def __init__(self, shards: Sequence[ShardMetadata]) -> None:
        self.shards = list(shards)

    def build_metadata(self, tensor_sizes: torch.Size, tensor_properties: Any) -> ShardedTensorMetadata:
        """Describes the local shards."""
        return ShardedTensorMetadata(self.shards, tensor_sizes, tensor_properties)

    def shard(self, tensor: torch.Tensor, src_rank: int = 0, process_group: Any = None) -> ShardedTensor:
        """Not possible: this sharding describes a tensor that is sharded already."""
        raise NotImplementedError("the shards of other ranks are not known")


def sharded_tensor_to_torch_sharded_tensor(sh_tens: Sequence[Any], rank: int | None = None,
                                           load_legacy_1d_flatten_tensors: bool = False) -> ShardedTensor:
    """A torch ShardedTensor of all local shards of one key; needs no process group and no communication.

    Its metadata lists the local shards only. Attribute `mcore_sh_ten` is the last descriptor without data. Shards share
    memory with the given data.

    Args:
        sh_tens: ShardedTensors of one key, with data.
        rank: where the shards are said to lie; None = rank in the default group, or 0.
        load_legacy_1d_flatten_tensors: as in mcore_to_pyt_state_dict.
    Raises:
        CheckpointingException: no data. ShardingError: no elements, or a descriptor contradicts itself.
    """
    if rank is None:
        rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
    boxes = [box for leaf in sh_tens for box in boxes_of(LocalShard(leaf, _source(leaf)))]
    if not boxes:
        raise failure(ShardingError, f"{sh_tens[0].key} has no elements on this rank", key=sh_tens[0].key)
    shards = [Shard.from_tensor_and_offsets(box.view, list(box.offsets), rank) for box in boxes]
    some = boxes[0].view
    properties = TensorProperties(dtype=some.dtype, layout=some.layout, requires_grad=some.requires_grad,
                                  memory_format=torch.contiguous_format, pin_memory=some.is_pinned())
    made: Any = ShardedTensorBase.__new__(
        ShardedTensor, _LocalBoxesSpec([shard.metadata for shard in shards]), *sh_tens[0].global_shape,
        dtype=properties.dtype, layout=properties.layout, pin_memory=properties.pin_memory,
        requires_grad=properties.requires_grad)
    made._local_shards, made._remote_shards, made._process_group, made._init_rrefs = shards, {}, None, False
    made.mcore_sh_ten = sh_tens[-1].without_data()
    made.key = sh_tens[0].key
    return made  # type: ignore[no-any-return]


def _unwrap_pyt_sharded_tensor(sh_ten: Any) -> Any:
    """Local tensors, without prepended axes, of a value that mcore_to_pyt_state_dict made; anything else as it is.

    Takes the original's own wrappers, too.
    """
    if isinstance(sh_ten, _Boxes):
        return sh_ten.local_tensors()
    if isinstance(sh_ten, ShardedTensor):
        prepended = getattr(sh_ten, "mcore_sh_ten").prepend_axis_num
        return [_without_leading_axes(shard.tensor, prepended) for shard in sh_ten.local_shards()]
    if hasattr(sh_ten, "_local_shards"):
        return [shard._sh_ten.data for shard in sh_ten._local_shards]
    return [sh_ten._sh_ten.data] if hasattr(sh_ten, "_sh_ten") else sh_ten


def _without_leading_axes(tensor: torch.Tensor, count: int) -> torch.Tensor:
    for _ in range(count):
        require(tensor.size(0) == 1, f"a prepended axis has {tensor.size(0)} elements")
        tensor = tensor[0]
    return tensor
