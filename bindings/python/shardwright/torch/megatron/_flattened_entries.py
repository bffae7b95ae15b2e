# SPDX-License-Identifier: Apache-2.0
"""Reads from entries that Megatron up to 0.14 stored flattened: the grid of shards as axes, then the elements of one
shard.

A wanted shard, flattened or not, of whatever grid, is filled from runs of elements that it shares with stored shards.
Of each stored shard one range is read, from the first needed element to the last.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, TensorStorageMetadata

from ...errors import UnimplementedError
from ._flat_ranges import Run, row_major_boxes, runs_of_overlap
from .checkpointable import LocalShard, local_shards_of
from .errors import ShardingError, failure
from .kinds import flat_range_of

_SHAPE = "nd_reformulated_orig_global_shape"


class _Piece(NamedTuple):
    """A range of one stored shard, and where its elements go."""

    data: torch.Tensor
    runs: list[Run]
    start: int  # first element of the range in the stored shard


def flattened_shapes(metadata: Any) -> dict[str, tuple[int, ...]]:
    """Shapes of the whole tensors of the entries that are flattened, by name."""
    kept = getattr(metadata, "mcore_data", None) or {}
    return {name: tuple(facts[_SHAPE]) for name, facts in kept.items() if facts.get(_SHAPE) is not None}


def refuse_unexplained(name: str, stored: Sequence[int], shape: Sequence[int]) -> None:
    """Refuses an entry that has the form of a tensor of this shape, flattened, where the metadata says no shape for it.

    Raises:
        ShardingError: names the entry.
    """
    fragments = tuple(stored[:-1])
    if len(fragments) != len(shape) or not all(f > 0 and s % f == 0 for s, f in zip(shape, fragments, strict=True)):
        return
    if stored[-1] == math.prod(s // f for s, f in zip(shape, fragments, strict=True)):
        raise failure(ShardingError, f"{name} of the shape {tuple(shape)} is stored as {tuple(stored)}, flattened as Megatron up to "
                      "0.14 did it, and .metadata has no mcore_data that says its shape: restore the .metadata that was written "
                      "with it, or load the checkpoint with the Megatron that wrote it and save it again", key=name)


class FlattenedRequest(torch.Tensor):
    """A wanted tensor in the form of a flattened entry: lists ranges of stored shards, takes what was read of them."""

    _chunks: list[ChunkStorageMetadata]
    _pieces: list[_Piece]

    def __new__(cls, name: str, wanted: Any, stored: TensorStorageMetadata, shape: Sequence[int]) -> FlattenedRequest:
        """`wanted` is a value of mcore_to_pyt_state_dict; `shape` that of the whole tensor.

        Raises:
            ShardingError: another shape is wanted, or the entry is no grid of that shape. UnimplementedError: the shape
                may differ (allow_shape_mismatch).
        """
        made: FlattenedRequest = torch.Tensor._make_wrapper_subclass(cls, stored.size, dtype=wanted.dtype,
                                                                     device=wanted.device)
        made._chunks, made._pieces = [], []
        fragments = tuple(stored.size[:-1])
        if len(fragments) != len(shape) or any(s % f for s, f in zip(shape, fragments, strict=True)):
            raise failure(ShardingError, f"{name} of the shape {tuple(shape)} is stored as a grid of {fragments} shards",
                          key=name)
        extents = tuple(s // f for s, f in zip(shape, fragments, strict=True))
        for shard in local_shards_of(wanted):
            if shard.descriptor.allow_shape_mismatch:
                raise UnimplementedError(f"{name} is stored flattened, so its shape cannot be changed", {"key": name})
            if tuple(shard.descriptor.global_shape) != tuple(shape):
                raise failure(ShardingError, f"Global shape mismatch for loaded ({tuple(shape)}) and expected "
                              f"({tuple(shard.descriptor.global_shape)}) tensor for key {name}", key=name)
            made._add(shard, extents)
        return made

    def _add(self, shard: LocalShard, extents: Sequence[int]) -> None:
        tensor = shard.descriptor
        offset = tuple(tensor.global_offset)
        sizes = (*(1,) * tensor.prepend_axis_num, *tensor.local_shape)
        cells = (range(begin // extent, -(-(begin + size) // extent)) if extent else range(0)
                 for begin, size, extent in zip(offset, sizes, extents, strict=True))
        for cell in itertools.product(*cells):
            corner = [position * extent for position, extent in zip(cell, extents, strict=True)]
            runs = list(runs_of_overlap(corner, extents, offset, sizes, flat_range_of(tensor)))
            if runs:
                start, stop = min(run.stored for run in runs), max(run.stored + run.length for run in runs)
                offsets, lengths = (*cell, start), (*(1,) * len(cell), stop - start)
                self._chunks.append(ChunkStorageMetadata(torch.Size(offsets), torch.Size(lengths)))
                self._pieces.append(_Piece(shard.data, runs, start))

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        """The ranges to read."""
        return self._chunks

    def accept(self, piece: int, offset: int, values: torch.Tensor) -> None:
        """Puts the elements of range `piece` that begin at `offset` in it where they belong."""
        data, runs, start = self._pieces[piece]
        begin, values = start + offset, values.reshape(-1)
        for run in runs:
            first, last = max(run.stored, begin), min(run.stored + run.length, begin + values.numel())
            if first < last:
                _fill(data, run.wanted + first - run.stored, values[first - begin:last - begin])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (),  # type: ignore[override]
                           kwargs: Any = None) -> Any:
        raise UnimplementedError(f"{cls.__name__} only tells planners what to read; {func} is not for it")


def _fill(data: torch.Tensor, start: int, values: torch.Tensor) -> None:
    """Sets the elements of a tensor, row-major, from number `start` on."""
    if data.is_contiguous():
        data.view(-1)[start:start + values.numel()].copy_(values)
        return
    for box in row_major_boxes(data.shape, start, start + values.numel()):
        where = tuple(slice(begin, begin + size) for begin, size in zip(box.offsets, box.sizes, strict=True))
        data[where].copy_(values[box.start:box.start + math.prod(box.sizes)].view(box.sizes))
