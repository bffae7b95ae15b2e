# SPDX-License-Identifier: Apache-2.0
"""Areas of tensors under mesh_shape + tensor_map + rank_list, and their intersections.

An area is ((begin, end), ...), one pair per dimension. A tensor map has one entry per tensor dimension: an axis of the
mesh counted from the right, -1 for a dimension that is not split, or a tuple of axes, the first one outermost. A rank
is meant by its position in the mesh. Behaviour of HyperParallel 0.1.0, with two differences: dimensions that do not
divide evenly are cut as torch.chunk cuts them, and maps that name no axis, one axis twice, or not each dimension are
refused.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..errors import InvalidArgumentError
from ..layout import Layout
from .faults import ArgumentTypeError
from .model import ChunkStorageMetadata

Area = tuple[tuple[int, int], ...]
MapEntry = int | Sequence[int]
_CACHED_AREAS_MAX = 4096
_CACHED_LAYOUTS_MAX = 256


def rank_id_to_dev_id_list(mesh_shape: Sequence[int], rank_id: int) -> list[int]:
    """Coordinates of a position in the mesh, last axis fastest. Positions outside the mesh wrap."""
    coordinates = [0] * len(mesh_shape)
    for axis in range(len(mesh_shape) - 1, -1, -1):
        rank_id, coordinates[axis] = divmod(rank_id, mesh_shape[axis])
    return coordinates


def infer_slice_area_by_rank(mesh_shape: Sequence[int], tensor_map: Sequence[MapEntry], rank_id: int,
                             full_shape: Sequence[int]) -> Area:
    """Area of a tensor that the rank at position `rank_id` of the mesh holds.

    Args:
        mesh_shape: extents of the mesh.
        tensor_map: one entry per dimension of the tensor.
        rank_id: position in the mesh, 0 to the product of mesh_shape.
        full_shape: global shape.
    Raises InvalidArgumentError (a ValueError).
    """
    entries = tuple((entry,) if isinstance(entry, int) else tuple(entry) for entry in tensor_map)
    return _area(tuple(int(extent) for extent in mesh_shape), entries, int(rank_id),
                 tuple(int(extent) for extent in full_shape))


@lru_cache(_CACHED_AREAS_MAX)
def _area(mesh: tuple[int, ...], entries: tuple[tuple[int, ...], ...], position: int, shape: tuple[int, ...]) -> Area:
    layout = _layout(mesh, entries)
    if not layout.contains(position):
        raise InvalidArgumentError(f"position {position} is not in the mesh {mesh}", {"parameter": "rank_id"})
    (offsets, sizes), = layout.boxes(shape, position)
    return tuple((begin, begin + size) for begin, size in zip(offsets, sizes, strict=True))


@lru_cache(_CACHED_LAYOUTS_MAX)
def _layout(mesh: tuple[int, ...], entries: tuple[tuple[int, ...], ...]) -> Layout:
    return Layout(mesh, tensor_map=[tuple(axis for axis in axes if axis != -1) or -1 for axes in entries])


def infer_intersection(area_a: Any, area_b: Any) -> Area | None:
    """Common part of two areas, None when there is none; of two areas without dimensions: ().

    Raises ArgumentTypeError (a TypeError) for what is no area, InvalidArgumentError when dimensions differ in number.
    """
    for area in (area_a, area_b):
        _check_area(area)
    if len(area_a) != len(area_b):
        raise InvalidArgumentError(f"areas {area_a} and {area_b} have {len(area_a)} and {len(area_b)} dimensions")
    common = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(area_a, area_b, strict=True))
    return None if any(begin >= end for begin, end in common) else common


def _check_area(area: Any) -> None:
    if not isinstance(area, (tuple, list)):
        raise ArgumentTypeError(f"an area is a tuple of (begin, end) pairs, found {type(area).__qualname__}")
    for pair in area:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentTypeError(f"an area is a tuple of (begin, end) pairs, found {pair!r} in it")


def chunk_to_area(chunk: ChunkStorageMetadata) -> Area:
    """A chunk's box as an area."""
    return tuple((offset, offset + chunk.sizes[dim]) for dim, offset in enumerate(chunk.offsets))


def area_to_chunk(area: Area) -> ChunkStorageMetadata:
    """An area as the box of a chunk."""
    return ChunkStorageMetadata(tuple(begin for begin, _ in area), tuple(end - begin for begin, end in area))


def narrow_tensor_by_index(tensor: Any, offsets: Sequence[int], lengths: Sequence[int]) -> Any:
    """The part of a tensor from `offsets` on, `lengths` elements long; the tensor itself when either is empty.

    A view where the framework's basic slicing gives one (numpy, torch).
    """
    if not len(offsets) or not len(lengths):
        return tensor
    return tensor[tuple(slice(int(o), int(o) + int(n)) for o, n in zip(offsets, lengths, strict=False))]
