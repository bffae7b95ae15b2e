# SPDX-License-Identifier: Apache-2.0
"""ShardedTensor: which part of which global tensor a local tensor is (Megatron-core dist_checkpointing, 0.12 to 0.19).

Shapes and offsets are in elements. `local_shape` has no prepended axes, `global_shape` and `global_offset` have.
Flattened ranges, removed from the original in 0.15, are accepted: they describe a slice of the row-major local shard.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ...errors import InvalidArgumentError, OutOfRangeError, UnimplementedError
from .errors import ShardingError, failure, require
from .kinds import flat_range_of

ReplicaId = int | tuple[int, ...]
RankOffset = tuple[int, int, int]


class ShardedBase:
    """What tensors, objects and factories have: `key`, `data`, `replica_id`, and a copy without data."""

    key: str
    data: Any
    replica_id: ReplicaId

    def validate_metadata_integrity(self) -> None:
        """Raises when the fields contradict each other."""
        raise NotImplementedError

    def without_data(self) -> ShardedBase:
        """A copy whose `data` is None, for exchanges of descriptions."""
        raise NotImplementedError


@dataclass
class ShardedTensor(ShardedBase):
    """A local tensor as a part of a global one.

    Attributes:
        key: name of the global tensor.
        data: the local tensor, or None in a description.
        dtype: element type.
        local_shape: extents of the local shard, before flattening and without prepended axes.
        global_shape, global_offset: with prepended axes.
        axis_fragmentations: number of equal shards per axis, or None for an irregular grid.
        replica_id: see is_main_replica.
        prepend_axis_num: leading axes of size 1 that the local tensor has in the global one.
        allow_shape_mismatch: the stored tensor may be larger or smaller; it is cropped or padded with zeros.
        flattened_range: the elements of the row-major local shard that `data` (one-dimensional) holds.
    """

    key: str
    data: torch.Tensor | None = field(repr=False)
    dtype: torch.dtype
    local_shape: tuple[int, ...]
    global_shape: tuple[int, ...]
    global_offset: tuple[int, ...]
    axis_fragmentations: tuple[int, ...] | None
    replica_id: ReplicaId = 0
    prepend_axis_num: int = 0
    allow_shape_mismatch: bool = False
    flattened_range: slice | None = None

    def __post_init__(self) -> None:
        self.validate_metadata_integrity()

    def validate_metadata_integrity(self) -> None:
        """The invariants that construction guarantees. check_sharded_tensor has those that need more than this shard.

        Raises:
            ShardingError: dtype, shape, number of dimensions, offset off the grid, or flattened range is wrong.
        """
        _check_data(self)
        if len(self.global_shape) != len(self.global_offset):
            raise _wrong(self, f"it has {len(self.global_shape)} global extents and {len(self.global_offset)} offsets")
        if len(self.local_shape) + self.prepend_axis_num != len(self.global_shape):
            raise _wrong(self, f"{len(self.local_shape)} local extents and {self.prepend_axis_num} prepended axes do "
                               f"not make {len(self.global_shape)} global extents")
        if self.axis_fragmentations is not None:
            for axis, (offset, size) in enumerate(_local_axes(self)):
                if size != 0 and offset % size != 0:
                    raise _wrong(self, f"offset {offset} in local dimension {axis} is no multiple of the extent {size}")

    @property
    def has_regular_grid(self) -> bool:
        """True when all shards have the extents of this one."""
        return self.axis_fragmentations is not None

    def global_slice(self) -> tuple[int | slice, ...]:
        """Index of this shard in the global tensor: integers for prepended axes, slices for the others."""
        prepended = self.global_offset[:self.prepend_axis_num]
        return (*prepended, *(slice(offset, offset + size) for offset, size in _local_axes(self)))

    def local_chunk_offset_in_global(self) -> tuple[int, ...]:
        """Position of this shard in the grid of shards. An axis without elements has position 0.

        Raises:
            ShardingAssertionError: an offset is no multiple of the extent.
        """
        found = list(self.global_offset[:self.prepend_axis_num])
        for offset, size in _local_axes(self):
            require(size == 0 or offset % size == 0, f"offset {offset} is no multiple of {size} in {self}", key=self.key)
            found.append(offset // size if size else 0)
        return tuple(found)

    def max_allowed_chunks(self) -> tuple[int, ...]:
        """Global extent per fragment on each axis, rounded down when shapes may differ.

        Raises:
            ShardingError: irregular grid, or not a whole number while shapes may not differ.
        """
        if self.axis_fragmentations is None:
            raise _wrong(self, "an irregular grid has no fragments")
        for size, count in zip(self.global_shape, self.axis_fragmentations, strict=True):
            if size % count and not self.allow_shape_mismatch:
                raise _wrong(self, f"extent {size} is not divisible by the fragmentation {count}")
        return tuple(size // count for size, count in zip(self.global_shape, self.axis_fragmentations, strict=True))

    def without_data(self) -> ShardedTensor:
        """A copy whose `data` is None."""
        return replace(self, data=None)

    @classmethod
    def from_rank_offsets(cls, key: str, data: torch.Tensor, *rank_offsets: RankOffset, replica_id: ReplicaId = 0,
                          prepend_axis_num: int = 0, flattened_range: None = None, **init_kwargs: Any) -> ShardedTensor:
        """A shard of a regular grid, given by (axis, index on that axis, number of shards on it).

        Axes count the prepended ones; an axis that is given twice takes the later tuple.

        Raises:
            ShardingError: negative axis or index, count below 1, index beyond the count.
            OutOfRangeError: no such axis. InvalidArgumentError: a flattened range was given.
        """
        if flattened_range is not None:
            raise InvalidArgumentError("from_rank_offsets takes no flattened_range; use from_rank_offsets_flat",
                                       {"parameter": "flattened_range", "key": key})
        shape, offset, fragments = _grid(key, tuple(data.shape), rank_offsets, prepend_axis_num)
        return cls(key, data, data.dtype, tuple(data.shape), shape, offset, fragments, replica_id, prepend_axis_num,
                   **init_kwargs)

    @classmethod
    def from_rank_offsets_flat(cls, key: str, data: torch.Tensor, non_flat_local_shape: Sequence[int],
                               *args: RankOffset, flattened_range: slice | None = None, replica_id: ReplicaId = 0,
                               prepend_axis_num: int = 0, **init_kwargs: Any) -> ShardedTensor:
        """A slice of the flattened shard with the extents `non_flat_local_shape`; `data` is one-dimensional.

        Raises:
            InvalidArgumentError: no range was given. Otherwise as from_rank_offsets.
        """
        if flattened_range is None:
            raise InvalidArgumentError("from_rank_offsets_flat needs flattened_range; use from_rank_offsets without one",
                                       {"parameter": "flattened_range", "key": key})
        local = tuple(int(size) for size in non_flat_local_shape)
        shape, offset, fragments = _grid(key, local, args, prepend_axis_num)
        return cls(key, data, data.dtype, local, shape, offset, fragments, replica_id, prepend_axis_num,
                   flattened_range=flattened_range, **init_kwargs)

    def init_data(self, device: str | torch.device, init_fn: Callable[..., torch.Tensor] = torch.empty) -> None:
        """Allocates `data` on `device` by `init_fn(shape, dtype=, device=)`; does nothing when there is data."""
        if self.data is None:
            self.data = init_fn(data_shape(self), dtype=self.dtype, device=device)

    def narrow(self, dim: int, start: int, length: int) -> list[ShardedTensor]:
        """This shard when every rank narrows its own alike; `dim` counts without prepended axes.

        Returns one shard; none when a flattened range holds nothing of it. Data is a view.

        Raises:
            ShardingAssertionError: the shards on this axis are not equal, or do not scale to whole numbers.
            UnimplementedError: a flattened shard along another axis than 0.
        """
        axis, local = dim + self.prepend_axis_num, self.local_shape[dim]
        shape, offset = self.global_shape[axis], self.global_offset[axis]
        regular = local > 0 and shape % local == 0 and offset % local == 0
        require(regular, f"only a regular grid of shards can be narrowed, not {self}", key=self.key)
        exact = shape * length % local == 0 and offset * length % local == 0
        require(exact, f"{length} of {local} elements do not scale extent {shape} and offset {offset}", key=self.key)
        changed = {"local_shape": _with(self.local_shape, dim, length),
                   "global_shape": _with(self.global_shape, axis, shape * length // local),
                   "global_offset": _with(self.global_offset, axis, offset * length // local)}
        if self.flattened_range is None:
            data = None if self.data is None else self.data.narrow(dim, start, length)
            return [replace(self, data=data, **changed)]  # type: ignore[arg-type]
        if dim != 0:
            raise UnimplementedError("a flattened shard is narrowed along its first axis only", {"key": self.key})
        row = math.prod(self.local_shape[1:])
        begin = max(self.flattened_range.start, start * row)
        end = min(self.flattened_range.stop, (start + length) * row)
        if begin >= end:
            return []
        skipped = begin - self.flattened_range.start
        data = None if self.data is None else self.data[skipped:skipped + end - begin]
        kept = slice(begin - start * row, end - start * row)
        return [replace(self, data=data, flattened_range=kept, **changed)]  # type: ignore[arg-type]


def data_shape(tensor: Any) -> tuple[int, ...]:
    """Extents of the data of a ShardedTensor: the local ones, or one dimension for a flattened range."""
    flat = flat_range_of(tensor)
    return tuple(tensor.local_shape) if flat is None else (flat.stop - flat.start,)


def check_sharded_tensor(tensor: Any) -> None:
    """What the original never checks: bounds, negative values, fragments that do not make the global extents.

    Raises:
        ShardingError: with the key, the axis and the values.
    """
    prepended = tensor.prepend_axis_num
    sizes = (1,) * prepended + tuple(tensor.local_shape)
    fragments = tensor.axis_fragmentations
    if fragments is not None and len(fragments) != len(tensor.global_shape):
        raise _wrong(tensor, f"it has {len(tensor.global_shape)} extents and {len(fragments)} fragmentations")
    for axis, (shape, offset, size) in enumerate(zip(tensor.global_shape, tensor.global_offset, sizes, strict=True)):
        if shape < 0 or offset < 0 or size < 0:
            raise _wrong(tensor, f"axis {axis} has a negative extent or offset ({shape}, {offset}, {size})")
        if offset + size > shape:
            raise _wrong(tensor, f"axis {axis} ends at {offset + size}, beyond the global extent {shape}")
        if fragments is not None and not tensor.allow_shape_mismatch and fragments[axis] * size != shape:
            raise _wrong(tensor, f"axis {axis}: {fragments[axis]} shards of {size} do not make the extent {shape}")


def _check_data(tensor: ShardedTensor) -> None:
    if tensor.flattened_range is not None:
        _check_flat_range(tensor, tensor.flattened_range)
    if tensor.data is None:
        return
    if tensor.data.dtype != tensor.dtype:
        raise _wrong(tensor, f"its data is {tensor.data.dtype}")
    if tuple(tensor.data.shape) != data_shape(tensor):
        raise _wrong(tensor, f"its data has the shape {tuple(tensor.data.shape)}, expected {data_shape(tensor)}")


def _check_flat_range(tensor: ShardedTensor, flat: slice) -> None:
    if flat.step is not None:
        raise _wrong(tensor, "a flattened range has no step")
    if not 0 <= flat.start <= flat.stop <= math.prod(tensor.local_shape):
        raise _wrong(tensor, f"the flattened range {flat.start}:{flat.stop} is outside of {tuple(tensor.local_shape)}")


def _grid(key: str, local: tuple[int, ...], rank_offsets: Sequence[RankOffset],
          prepended: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Global shape, offset and fragmentation of a shard with local extents `local`."""
    shape, offset = [1] * prepended + list(local), [0] * (prepended + len(local))
    fragments = [1] * (prepended + len(local))
    for axis, index, count in rank_offsets:
        if axis < 0 or index < 0 or count < 1 or index >= count:
            raise failure(ShardingError, f"Invalid rank offsets: {rank_offsets} for key {key}.", key=key)
        if axis >= len(shape):
            raise OutOfRangeError(f"axis {axis} of {key}, which has {len(shape)} axes", {"key": key, "axis": str(axis)})
        size = 1 if axis < prepended else local[axis - prepended]
        shape[axis], offset[axis], fragments[axis] = count * size, index * size, count
    return tuple(shape), tuple(offset), tuple(fragments)


def _local_axes(tensor: ShardedTensor) -> zip[tuple[int, int]]:
    """(offset, extent) of each axis that is not prepended."""
    return zip(tensor.global_offset[tensor.prepend_axis_num:], tensor.local_shape, strict=True)


def _with(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    changed = list(values)
    changed[index] = value
    return tuple(changed)


def _wrong(tensor: Any, what: str) -> Exception:
    return failure(ShardingError, f"{what}: {tensor}", key=tensor.key)
