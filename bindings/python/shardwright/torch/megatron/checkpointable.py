# SPDX-License-Identifier: Apache-2.0
"""Sharded tensors as torch's checkpoint planners take them: tensor subclasses that list their own boxes.

Only the boxes of this rank exist, whatever the grid: with prepended axes, irregular grids, several shards per key and
flattened ranges alike. Boxes without elements are left out. A box that a rank asks for twice is read once.
"""
from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch.distributed._shard.sharded_tensor.api import ShardedTensor
from torch.distributed.checkpoint.metadata import (ChunkStorageMetadata, MetadataIndex, TensorProperties,
                                                   TensorStorageMetadata)
from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType

from ...errors import InvalidArgumentError, UnimplementedError
from ._flat_ranges import row_major_boxes
from .kinds import flat_range_of


class LocalShard(NamedTuple):
    """A descriptor and the memory of its shard; `data` of the descriptor itself is not used."""

    descriptor: Any
    data: torch.Tensor


class TensorBox(NamedTuple):
    """One box of the global tensor and the view of local memory that holds it, with prepended axes."""

    offsets: torch.Size
    sizes: torch.Size
    view: torch.Tensor

    def inside(self, shape: Sequence[int]) -> TensorBox:
        """What of it lies inside a tensor of another shape, which begins at the same origin: it loses its end at most."""
        sizes = _sizes_inside(self.offsets, self.sizes, shape)
        return TensorBox(self.offsets, sizes, self.view[tuple(slice(size) for size in sizes)])


def boxes_of(shard: LocalShard) -> list[TensorBox]:
    """The boxes of a shard that have elements: one, or for a flattened range up to 2 * ndim - 1."""
    tensor, data = shard
    prepended = tensor.prepend_axis_num
    flat = flat_range_of(tensor)
    if flat is None:
        sizes = torch.Size((*(1,) * prepended, *tensor.local_shape))
        return [TensorBox(torch.Size(tensor.global_offset), sizes, data[(None,) * prepended])] if 0 not in sizes else []
    first = tuple(tensor.global_offset[:prepended])
    found = []
    for box in row_major_boxes(tensor.local_shape, flat.start, flat.stop):
        offsets = (begin + at for begin, at in zip(tensor.global_offset[prepended:], box.offsets, strict=True))
        sizes = torch.Size((*(1,) * prepended, *box.sizes))
        view = data[box.start:box.start + math.prod(box.sizes)].view(sizes)
        found.append(TensorBox(torch.Size((*first, *offsets)), sizes, view))
    return found


class _Boxes(torch.Tensor):
    """Local shards of one global tensor, with the methods by which torch's planners ask a tensor for its boxes."""

    _shards: list[LocalShard]
    _unique: list[TensorBox]
    _repeated: list[tuple[TensorBox, TensorBox]]

    @staticmethod
    def _of(cls: Any, shards: Sequence[LocalShard]) -> Any:
        some = shards[0]
        return torch.Tensor._make_wrapper_subclass(
            cls, torch.Size(some.descriptor.global_shape), dtype=some.data.dtype, device=some.data.device)

    def _take(self, shards: Sequence[LocalShard]) -> None:
        self._shards = list(shards)
        by_place: dict[tuple[torch.Size, torch.Size], TensorBox] = {}
        self._repeated = []
        for shard in shards:
            for box in boxes_of(shard):
                known = by_place.setdefault((box.offsets, box.sizes), box)
                if known is not box:
                    self._repeated.append((box, known))
        self._unique = list(by_place.values())

    def __create_write_items__(self, fqn: str, object: Any, index: int | None = None) -> list[WriteItem]:
        """One item per box; a box that occurs twice gives two, so that the check of the whole plan finds them."""
        boxes = self.write_boxes()
        numbered = index is None and len(self._shards) > 1
        hints: Iterable[int | None] = range(len(boxes)) if numbered else [index] * len(boxes)
        return [_write_item(fqn, box, self.size(), hint) for box, hint in zip(boxes, hints, strict=True)]

    def write_boxes(self) -> list[TensorBox]:
        """What a save writes: every box, one that occurs twice too."""
        return [*self._unique, *(box for box, _ in self._repeated)]

    def wanted_boxes(self) -> list[TensorBox]:
        """What a load fills: every place once; local_tensors copies it to where it is wanted twice."""
        return self._unique

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        """The boxes to read."""
        return [ChunkStorageMetadata(box.offsets, box.sizes) for box in self._unique]

    def __get_tensor_shard__(self, index: MetadataIndex) -> torch.Tensor:
        """Memory of the box at an offset; `index.index` tells boxes with one offset apart."""
        if index.offset is None:
            raise InvalidArgumentError(f"Cannot lookup {index.fqn} for a {type(self).__name__} without an offset",
                                       {"tensor": index.fqn})
        hint = index.index
        if hint is not None and hint < len(self._unique) and self._unique[hint].offsets == index.offset:
            return self._unique[hint].view
        for box in self._unique:
            if box.offsets == index.offset:
                return box.view
        raise InvalidArgumentError(f"Could not find shard at '{index.offset}' for FQN: '{index.fqn}'",
                                   {"tensor": index.fqn})

    def local_tensors(self) -> list[torch.Tensor]:
        """Memory of the shards in the order in which they were given; what was asked for twice is copied here."""
        for box, read in self._repeated:
            box.view.copy_(read.view)
        return [shard.data for shard in self._shards]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (),  # type: ignore[override]
                           kwargs: Any = None) -> Any:
        raise UnimplementedError(f"{cls.__name__} only tells planners where shards lie; {func} is not for it")

    def __repr__(self) -> str:  # type: ignore[override]
        return f"{type(self).__name__}({[shard.descriptor for shard in self._shards]})"


def _write_item(fqn: str, box: TensorBox, size: torch.Size, hint: int | None) -> WriteItem:
    data = TensorWriteData(chunk=ChunkStorageMetadata(box.offsets, box.sizes),
                           properties=TensorProperties.create_from_tensor(box.view), size=size)
    return WriteItem(index=MetadataIndex(fqn, box.offsets, hint), type=WriteItemType.SHARD, tensor_data=data)


class CroppedRequest(torch.Tensor):
    """A wanted tensor while reads are planned: what of its boxes lies inside the stored tensor, which has another
    shape.

    Both tensors begin at the origin, so boxes lose their end at most, and reads mean the same places in the whole
    boxes.
    """

    _chunks: list[ChunkStorageMetadata]

    def __new__(cls, wanted: torch.Tensor, stored: TensorStorageMetadata) -> CroppedRequest:
        """`wanted` lists its boxes as torch's planners ask for them, or is a torch ShardedTensor."""
        made: CroppedRequest = torch.Tensor._make_wrapper_subclass(cls, stored.size, dtype=wanted.dtype,
                                                                   device=wanted.device)
        chunks = [_cropped(box, stored.size) for box in _wanted_boxes(wanted)]
        made._chunks = [chunk for chunk in chunks if 0 not in chunk.sizes]
        return made

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        """The boxes to read."""
        return self._chunks

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (),  # type: ignore[override]
                           kwargs: Any = None) -> Any:
        raise UnimplementedError(f"{cls.__name__} only tells planners what to read; {func} is not for it")


def _wanted_boxes(wanted: Any) -> list[ChunkStorageMetadata]:
    if isinstance(wanted, ShardedTensor):
        places = [shard.metadata for shard in wanted.local_shards()]
        return [ChunkStorageMetadata(torch.Size(place.shard_offsets), torch.Size(place.shard_sizes)) for place in places]
    return list(wanted.__create_chunk_list__())


def _cropped(box: ChunkStorageMetadata, shape: torch.Size) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(box.offsets, _sizes_inside(box.offsets, box.sizes, shape))


def _sizes_inside(offsets: Sequence[int], sizes: Sequence[int], shape: Sequence[int]) -> torch.Size:
    return torch.Size(max(0, min(offset + size, extent) - offset)
                      for offset, size, extent in zip(offsets, sizes, shape, strict=True))


class CheckpointableShardedTensor(_Boxes):
    """One shard of a global tensor. Any operation on it but asking for its boxes raises UnimplementedError."""

    def __new__(cls, data: torch.Tensor, sh_ten: Any) -> CheckpointableShardedTensor:
        """`data` is the memory of the shard that `sh_ten` describes."""
        made: CheckpointableShardedTensor = cls._of(cls, [LocalShard(sh_ten, data)])
        return made

    def __init__(self, data: torch.Tensor, sh_ten: Any) -> None:
        self._take([LocalShard(sh_ten, data)])

    @classmethod
    def from_sh_ten(cls, sh_ten: Any) -> CheckpointableShardedTensor:
        """The shard with the data of its descriptor."""
        return cls(sh_ten.data, sh_ten)

    @property
    def _sh_ten(self) -> Any:
        """The descriptor with its data, as the original keeps it."""
        described = copy.copy(self._shards[0].descriptor)
        described.data = self._shards[0].data
        return described


class LocalShardsContainer(_Boxes):
    """Several shards of one global tensor on one rank."""

    def __new__(cls, local_shards: Sequence[Any]) -> LocalShardsContainer:
        """`local_shards` are CheckpointableShardedTensors or LocalShards, at least one."""
        made: LocalShardsContainer = cls._of(cls, [_local_shard(local_shards[0])])
        return made

    def __init__(self, local_shards: Sequence[Any]) -> None:
        self._given = list(local_shards)
        self._take([_local_shard(shard) for shard in local_shards])

    @property
    def _local_shards(self) -> list[Any]:
        """The shards as the original keeps them: what was given, as values that tell a planner their boxes."""
        for place, shard in enumerate(self._given):
            if isinstance(shard, LocalShard):
                self._given[place] = CheckpointableShardedTensor(shard.data, shard.descriptor)
        return self._given


def local_shards_of(value: Any) -> list[LocalShard]:
    """The shards behind a value that mcore_to_pyt_state_dict made, also of the original's own wrappers."""
    if isinstance(value, _Boxes):
        return value._shards
    if hasattr(value, "_local_shards") and not isinstance(value, ShardedTensor):
        return [_local_shard(shard) for shard in value._local_shards]
    if hasattr(value, "_sh_ten"):
        return [_local_shard(value)]
    raise UnimplementedError(f"a {type(value).__name__} does not tell its shards; convert with mcore_to_pyt_state_dict")


def _local_shard(shard: Any) -> LocalShard:
    if isinstance(shard, LocalShard):
        return shard
    descriptor = shard._sh_ten
    return LocalShard(descriptor, descriptor.data)
