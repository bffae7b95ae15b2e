# SPDX-License-Identifier: Apache-2.0
"""What one value of a state dict is to torch's checkpoints: the items that it is written as, the boxes that it wants
filled, and the memory behind one item. Rules and texts are those of torch 2.15; tensor data is never touched.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.distributed._shard.sharded_tensor.api import ShardedTensor
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
from torch.distributed.checkpoint.planner import SavePlan, TensorWriteData, WriteItem, WriteItemType
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from ._errors import InvalidPlanError

_PLACED_ATTRIBUTES = ("global_shape", "global_offsets", "local_offsets", "local_sizes")


def is_placed_tensor(value: Any) -> bool:
    """True for a plain tensor that says by attributes which boxes of a larger one it holds (CheckpointableTensor)."""
    return isinstance(value, torch.Tensor) and all(hasattr(value, name) for name in _PLACED_ATTRIBUTES)


def properties_of(tensor: torch.Tensor) -> TensorProperties:
    """Live properties of a tensor, in an object of its own."""
    stride = getattr(tensor, "stride", None)
    return TensorProperties(dtype=tensor.dtype, layout=tensor.layout, requires_grad=tensor.requires_grad,
                            memory_format=torch.contiguous_format, pin_memory=tensor.is_pinned(),
                            strides=stride() if callable(stride) else None)


def origin(value: Any) -> torch.Size:
    """Zeros, one per dimension."""
    return torch.Size([0] * len(value.size()))


def _check_inside(what: str, number: int, box: tuple[Sequence[int], Sequence[int]], shape: Sequence[int],
                  whole: str) -> None:
    for dim, (offset, size, extent) in enumerate(zip(*box, shape, strict=True)):
        if offset < 0 or size < 0 or offset + size > extent:
            raise InvalidPlanError(f"{what} shard {number} dimension {dim} is outside {whole}")


def _check_placed(tensor: Any) -> None:
    """The four attributes fit to each other and to the local tensor."""
    count, ndim, local_shape = len(tensor.global_offsets), len(tensor.global_shape), tuple(tensor.size())
    if len(tensor.local_offsets) != count:
        raise InvalidPlanError("global_offsets and local_offsets must have the same length")
    if len(tensor.local_sizes) != count:
        raise InvalidPlanError("global_offsets and local_sizes must have the same length")
    rows = zip(tensor.global_offsets, tensor.local_offsets, tensor.local_sizes, strict=True)
    for number, (offset, local_offset, size) in enumerate(rows):
        if len(offset) != ndim:
            raise InvalidPlanError(f"global_offsets[{number}] must have {ndim} dimensions")
        if len(local_offset) != len(local_shape):
            raise InvalidPlanError(f"local_offsets[{number}] must have {len(local_shape)} dimensions")
        if len(size) != ndim:
            raise InvalidPlanError(f"local_sizes[{number}] must have {ndim} dimensions")
        if len(size) != len(local_shape):
            raise InvalidPlanError(f"local_sizes[{number}] must have {len(local_shape)} local dimensions")
        _check_inside("global", number, (offset, size), tensor.global_shape, "global_shape")
        _check_inside("local", number, (local_offset, size), local_shape, "tensor shape")


def _placed_chunks(tensor: Any) -> list[ChunkStorageMetadata]:
    _check_placed(tensor)
    return [ChunkStorageMetadata(torch.Size(offset), torch.Size(size))
            for offset, size in zip(tensor.global_offsets, tensor.local_sizes, strict=True)]


def _shard_chunk(shard_metadata: Any) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(torch.Size(shard_metadata.shard_offsets), torch.Size(shard_metadata.shard_sizes))


def _dtensor_chunk(tensor: Any) -> ChunkStorageMetadata:
    sizes, offsets = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    return ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes))


# ---- items ----

def _shard_item(fqn: str, chunk: ChunkStorageMetadata, properties: TensorProperties, size: torch.Size,
                hint: int | None = None) -> WriteItem:
    return WriteItem(index=MetadataIndex(fqn, chunk.offsets, hint), type=WriteItemType.SHARD,
                     tensor_data=TensorWriteData(chunk=chunk, properties=properties, size=size))


def _placed_items(fqn: str, tensor: Any) -> list[WriteItem]:
    return [_shard_item(fqn, chunk, properties_of(tensor), torch.Size(tensor.global_shape), number)
            for number, chunk in enumerate(_placed_chunks(tensor))]


def _sharded_items(fqn: str, tensor: Any, shards: Sequence[Any]) -> list[WriteItem]:
    whole = tensor.metadata()
    found = whole.tensor_properties
    return [_shard_item(fqn, _shard_chunk(shard),
                        TensorProperties(found.dtype, found.layout, found.requires_grad, found.memory_format,
                                         found.pin_memory, found.strides), whole.size) for shard in shards]


def _tensor_item(fqn: str, tensor: torch.Tensor) -> WriteItem:
    offsets = origin(tensor)
    return WriteItem(index=MetadataIndex(fqn, offsets), type=WriteItemType.TENSOR,
                     tensor_data=TensorWriteData(chunk=ChunkStorageMetadata(offsets, tensor.size()),
                                                 properties=properties_of(tensor), size=tensor.size()))


def write_items(fqn: str, value: Any) -> list[WriteItem]:
    """Items of one value: what its own method says, one per shard, one for a plain tensor or for any other object. A
    DTensor whose mesh leaves this rank out has none."""
    if isinstance(value, DTensor) and value.device_mesh.get_coordinate() is None:
        return []
    if hasattr(value, "__create_write_items__"):
        return list(value.__create_write_items__(fqn, value))
    if isinstance(value, ShardedTensor):
        return _sharded_items(fqn, value, [shard.metadata for shard in value.local_shards()])
    if is_placed_tensor(value):
        return _placed_items(fqn, value)
    if isinstance(value, torch.Tensor):
        return [_tensor_item(fqn, value)]
    return [WriteItem(index=MetadataIndex(fqn), type=WriteItemType.BYTE_IO)]


def metadata_items(fqn: str, value: Any) -> list[WriteItem]:
    """Items of one value as an index without data needs them: all shards of a ShardedTensor, not only the local ones."""
    if isinstance(value, DTensor):
        return [_shard_item(fqn, _dtensor_chunk(value), properties_of(value.to_local()), value.size())]
    if isinstance(value, ShardedTensor):
        return _sharded_items(fqn, value, value.metadata().shards_metadata)
    if isinstance(value, torch.Tensor):
        return _placed_items(fqn, value) if is_placed_tensor(value) else [_tensor_item(fqn, value)]
    return [WriteItem(index=MetadataIndex(fqn), type=WriteItemType.BYTE_IO)]


def save_plan_of(state_dict: Mapping[str, Any], items_of: Any = write_items) -> SavePlan:
    """The plan of a flat state dict, item by item."""
    return SavePlan([item for fqn, value in state_dict.items() for item in items_of(fqn, value)])


# ---- boxes that are wanted ----

def wanted_chunks(fqn: str, value: Any, metadata_type: type) -> list[ChunkStorageMetadata]:
    """Boxes of a tensor that this rank holds and wants filled; InvalidPlanError (a ValueError) for what is no tensor."""
    if hasattr(value, "__create_chunk_list__"):
        return list(value.__create_chunk_list__())
    if is_placed_tensor(value):
        return _placed_chunks(value)
    if isinstance(value, ShardedTensor):
        return [_shard_chunk(shard.metadata) for shard in value.local_shards()]
    if isinstance(value, torch.Tensor):
        return [ChunkStorageMetadata(origin(value), value.size())]
    raise InvalidPlanError(f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found "
                           f"{metadata_type}: the state holds a {type(value).__qualname__} there, no tensor",
                           {"tensor": fqn})


def is_whole_tensor(value: Any) -> bool:
    """True for a plain tensor that is all of what it is a tensor of."""
    return (type(value) in (torch.Tensor, torch.nn.Parameter) and not hasattr(value, "__create_chunk_list__")
            and not hasattr(value, "global_shape"))


def whole_chunk(size: torch.Size) -> ChunkStorageMetadata:
    """The box that is all of a tensor."""
    return ChunkStorageMetadata(torch.Size([0] * len(size)), size)


def global_size(value: Any) -> torch.Size:
    """Shape of the whole tensor of which a value may be a part."""
    return torch.Size(value.global_shape) if is_placed_tensor(value) else value.size()


# ---- memory behind an item ----

def _placed_shard(tensor: Any, index: MetadataIndex) -> torch.Tensor:
    _check_placed(tensor)
    starts = [torch.Size(offset) for offset in tensor.global_offsets]
    if index.offset is None:
        if len(starts) != 1:
            raise InvalidPlanError(f"Cannot lookup {index.fqn} with multiple checkpointable shards and no offset")
        number = 0
    elif index.index is not None and index.index < len(starts) and starts[index.index] == index.offset:
        number = index.index
    elif index.offset in starts:
        number = starts.index(index.offset)
    else:
        raise InvalidPlanError(f"Could not find checkpointable tensor shard at '{index.offset}' for FQN: '{index.fqn}'",
                               {"tensor": index.fqn})
    where = tuple(slice(offset, offset + size) for offset, size
                  in zip(tensor.local_offsets[number], tensor.local_sizes[number], strict=True))
    found: torch.Tensor = tensor[where] if where else tensor
    return found


def _local_shard(tensor: Any, index: MetadataIndex) -> torch.Tensor:
    if index.offset is None:
        raise InvalidPlanError(f"Cannot lookup {index.fqn} since its a ShardedTensor and no offset was provided")
    shards = tensor.local_shards()
    hinted = shards[index.index:index.index + 1] if index.index is not None else []
    for shard in [*hinted, *shards]:
        if torch.Size(shard.metadata.shard_offsets) == index.offset:
            found: torch.Tensor = shard.tensor
            return found
    raise InvalidPlanError(f"Could not find shard at '{index.offset}' for FQN: '{index.fqn}'", {"tensor": index.fqn})


def _not_sharded(index: MetadataIndex) -> InvalidPlanError:
    return InvalidPlanError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'",
                            {"tensor": index.fqn})


def find_object(state_dict: Mapping[str, Any], index: MetadataIndex) -> Any:
    """The tensor (part) or object that an index names. Thread-safe: it only reads."""
    if index.fqn not in state_dict:
        raise InvalidPlanError(f"Could not find FQN: '{index.fqn}'", {"tensor": index.fqn})
    value = state_dict[index.fqn]
    if not isinstance(value, torch.Tensor):
        if index.offset is not None:
            raise _not_sharded(index)
        return value
    if hasattr(value, "__get_tensor_shard__"):
        return value.__get_tensor_shard__(index)
    if is_placed_tensor(value):
        return _placed_shard(value, index)
    if isinstance(value, ShardedTensor):
        return _local_shard(value, index)
    if index.offset is not None and index.offset != origin(value):
        raise _not_sharded(index)
    return value
