# SPDX-License-Identifier: Apache-2.0
"""Layouts and shards: which boxes of a tensor a rank holds, and where they lie in its local tensor."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ._library import native
from ._options import KINDS, word
from .errors import InvalidArgumentError

_PLACEMENTS = {"replicate": 0, "shard": 1, "strided_shard": 2, "partial": 3, "flat": 4}
_FLAT, _SHAPE_MAY_DIFFER = 1, 2
Box = tuple[tuple[int, ...], tuple[int, ...]]
Piece = tuple[tuple[int, ...], tuple[int, ...], int]


def _placement_fields(placements: Sequence[Any]) -> dict[str, Any]:
    kinds, dims, factors = [], [], []
    for placement in placements:
        row = (placement,) if isinstance(placement, (str, int)) else tuple(placement)
        if isinstance(row[0], int):
            row = ("shard", *row)
        kinds.append(word("placement", row[0], _PLACEMENTS))
        dims.append(int(row[1]) if len(row) > 1 else 0)
        factors.append(int(row[2]) if len(row) > 2 else 0)
    return {"placement_kinds": kinds, "placement_dims": dims, "placement_factors": factors}


def _map_fields(entries: Sequence[int | Sequence[int]]) -> dict[str, Any]:
    axes = [(entry,) if isinstance(entry, int) else tuple(entry) for entry in entries]
    return {"tensor_map": [axis for entry in axes for axis in entry], "tensor_ndim": len(axes),
            "tensor_map_offsets": [0, *itertools.accumulate(map(len, axes))]}


class Layout:
    """A mesh of ranks and what its axes do to a tensor. Immutable.

    Args:
        mesh: extents of the mesh, such as (2, 4).
        placements: per axis "replicate"; ("shard", dim) or a tensor dimension as int (short for shard), uneven as
            torch.chunk cuts; ("strided_shard", dim, factor), torch's _StridedShard; or "flat": the row-major elements
            that the other axes leave are cut, so that the local tensor has one dimension. Axes cut from the first on.
        ranks: global ranks in row-major order of the mesh; None = 0, 1, 2, ...
        names: axis names.
        tensor_map: instead of placements, HyperParallel's form: per tensor dimension the mesh axis that splits it,
            counted from the right (0 = last axis), -1, or a tuple of axes, the outermost first.
    Raises InvalidArgumentError; FailedPreconditionError for a "partial" placement, whose tensor has to be reduced first;
    UnimplementedError for a mesh axis "interleaved_parallel" under a tensor map.
    """

    def __init__(self, mesh: Sequence[int], placements: Sequence[Any] | None = None, *,
                 ranks: Sequence[int] | None = None, names: Sequence[str] | None = None,
                 tensor_map: Sequence[int | Sequence[int]] | None = None) -> None:
        if (placements is None) == (tensor_map is None):
            raise InvalidArgumentError("a layout has either placements or a tensor map")
        fields: dict[str, Any] = {}
        if placements is not None:
            fields |= _placement_fields(placements)
            if len(placements) != len(mesh):
                raise InvalidArgumentError(
                    f"a mesh of {len(mesh)} axes needs as many placements, found {len(placements)}")
        if tensor_map is not None:
            fields |= _map_fields(tensor_map)
        self.mesh = tuple(int(extent) for extent in mesh)
        self.placements = None if placements is None else tuple(placements)
        self.tensor_map = None if tensor_map is None else tuple(tensor_map)
        if names is not None:
            fields["axis_names"] = [name.encode() for name in names]
        if ranks is not None:
            fields |= {"ranks": tuple(ranks), "rank_count": len(ranks)}
        self._handle: Any = native.shw_layout_create({"mesh_shape": self.mesh, "mesh_ndim": len(self.mesh), **fields})

    @property
    def rank_count(self) -> int:
        """Number of ranks in the mesh."""
        return int(native.shw_layout_rank_count(self._handle))

    def contains(self, rank: int) -> bool:
        """Whether the rank is in the mesh."""
        return bool(native.shw_layout_contains(self._handle, rank))

    def boxes(self, shape: Sequence[int], rank: int) -> list[Box]:
        """Boxes (offsets, sizes) of a tensor of this global shape that `rank` holds; none outside the mesh."""
        return [(offsets, sizes) for offsets, sizes, _ in self.pieces(shape, rank)]

    def pieces(self, shape: Sequence[int], rank: int) -> list[Piece]:
        """As `boxes`, each with the row-major element of the local tensor at which it begins."""
        found: list[Piece] = native.shw_py_layout_pieces(self._handle, tuple(shape), rank)
        return found

    def local_shape(self, shape: Sequence[int], rank: int) -> tuple[int, ...]:
        """Shape of the local tensor of `rank`; one extent where an axis is "flat", (0,) outside the mesh."""
        found: tuple[int, ...] = native.shw_layout_local_shape(self._handle, tuple(shape), rank)
        return found

    def __repr__(self) -> str:
        form = f"placements={self.placements}" if self.tensor_map is None else f"tensor_map={self.tensor_map}"
        return f"shardwright.Layout(mesh={self.mesh}, {form})"

    def __reduce__(self) -> Any:
        raise TypeError("a Layout is not pickled; make it again from its arguments")


@dataclass(frozen=True)
class GridShard:
    """One shard of a tensor as Megatron Core describes it.

    The local tensor lacks `prepended` leading axes of the global one, on which it has extent 1. `offsets` are elements of
    the global tensor; `fragments` the equal parts per global axis, None for an irregular grid; `flat_range` (begin, end)
    the row-major elements of the local shape that the rank holds, None for all. `shape_may_differ`: fragments times local
    shape need not be the global shape.
    """

    local_shape: tuple[int, ...]
    global_shape: tuple[int, ...]
    offsets: tuple[int, ...]
    fragments: tuple[int, ...] | None = None
    prepended: int = 0
    flat_range: tuple[int, int] | None = None
    shape_may_differ: bool = False

    @classmethod
    def at(cls, local_shape: Sequence[int], *places: tuple[int, int, int], prepended: int = 0,
           flat_range: tuple[int, int] | None = None) -> GridShard:
        """The regular shard that is part `index` of `count` on each axis of `places` = (axis, index, count), ...

        Axes count the prepended ones. The last place of an axis counts. Raises InvalidArgumentError.
        """
        flat = [number for place in places for number in place]
        if len(flat) != 3 * len(places):
            raise InvalidArgumentError("a place is (axis, index, count)")
        local = tuple(local_shape)
        shape, offsets, fragments = native.shw_py_grid_place(
            {"local_shape": local, "local_ndim": len(local), "prepended": prepended}, flat)
        return cls(local, shape, offsets, fragments, prepended, flat_range)

    def _fields(self) -> dict[str, Any]:
        """Fields of shw_grid_shard."""
        local, whole, offsets = tuple(self.local_shape), tuple(self.global_shape), tuple(self.offsets)
        fragments = None if self.fragments is None else tuple(self.fragments)
        parts = offsets if fragments is None else fragments
        if not len(local) + self.prepended == len(whole) == len(offsets) == len(parts):
            raise InvalidArgumentError(
                f"{len(local)} local and {self.prepended} prepended axes, {len(offsets)} offsets and {len(parts)} "
                f"fragments do not fit a global shape of {len(whole)}")
        begin, end = self.flat_range or (0, 0)
        flags = (_FLAT if self.flat_range is not None else 0) | (_SHAPE_MAY_DIFFER if self.shape_may_differ else 0)
        return {"local_shape": local, "local_ndim": len(local), "global_shape": whole, "offsets": offsets,
                "fragments": fragments, "prepended": self.prepended, "flags": flags, "flat_begin": begin,
                "flat_size": end - begin}

    def pieces(self) -> list[Piece]:
        """Boxes (offsets, sizes, local offset) after a check of everything: one, or those of the flat range.

        Raises InvalidArgumentError, and OutOfRangeError when shard or range leave the tensor.
        """
        found: list[Piece] = native.shw_py_grid_pieces(self._fields())
        return found

    def flat_entry(self) -> tuple[tuple[int, ...], Box]:
        """Shape of, and box in, the entry in which Megatron Core up to 0.14 stored the flat range."""
        shape, offsets, sizes = native.shw_py_grid_flat_entry(self._fields())
        return shape, (offsets, sizes)


def flat_entry_pieces(shape: Sequence[int], entry_shape: Sequence[int], chunk: Box) -> list[Piece]:
    """Boxes of a tensor of this shape that a chunk of such a flattened entry holds.

    Local offsets count the chunk's elements. Raises InvalidArgumentError, OutOfRangeError.
    """
    found: list[Piece] = native.shw_py_grid_flat_pieces(tuple(shape), tuple(entry_shape), (*chunk[0], *chunk[1]))
    return found


def overlapping_parts(stored: int, wanted: int, index: int) -> range:
    """Which of `stored` equal parts of an axis meet part `index` of `wanted` equal parts, exactly."""
    begin, count = native.shw_py_grid_overlap(stored, wanted, index)
    return range(begin, begin + count)


@dataclass(frozen=True)
class Shard:
    """A leaf of a state that is a part of a tensor.

    `boxes` (offsets and sizes in the global tensor, in any order), or `layout`, whose boxes of this rank the local tensor
    holds, or both, which must agree. Neither means that the local tensor is the whole. Saves of states with layouts are
    planned by arithmetic on them. `local_offsets` are the row-major elements of the local tensor at which the boxes
    begin, None = one behind the other. A box is a window of a local tensor that has its number of dimensions; of any
    other it is a run of elements, and the local tensor is contiguous. A `replica` is filled by loads; another rank saves it.
    `fragments`, one per extent of the whole tensor (0: no regular cut), say of which equal parts the boxes are cut once
    more; a mapping that splits each part asks for them.
    """

    local: Any
    global_shape: tuple[int, ...]
    boxes: tuple[Box, ...] = ()
    layout: Layout | None = None
    local_offsets: tuple[int, ...] | None = None
    kind: str = "auto"
    replica: bool = False
    fragments: tuple[int, ...] = ()

    @classmethod
    def of_part(cls, local: Any, part: GridShard, *, replica: bool = False, kind: str = "auto") -> Shard:
        """What a shard of Megatron Core is; `local` has one dimension where it is a flat range.

        Raises InvalidArgumentError, and OutOfRangeError when shard or range leave the tensor.
        """
        pieces = part.pieces()
        return cls(local, tuple(part.global_shape), tuple((offsets, sizes) for offsets, sizes, _ in pieces),
                   local_offsets=tuple(start for _, _, start in pieces), kind=kind, replica=replica,
                   fragments=tuple(part.fragments or ()))

    @classmethod
    def of_grid(cls, local: Any, fragments: Sequence[int], index: Sequence[int], *, replica: bool = False,
                kind: str = "auto") -> Shard:
        """One part of a grid, as Megatron Core describes shards.

        Args:
            fragments: into how many equal parts each axis of the whole tensor is cut.
            index: the part that `local` is, on each axis. Values beyond the dimensions of `local` come first and are axes
                that it lacks and has extent 1 on.
            replica: another rank saves it; loads fill it.
        Raises InvalidArgumentError for counts that do not fit and for a part that is not there.
        """
        extents = tuple(local.shape)
        prepended = len(fragments) - len(extents)
        if len(fragments) != len(index) or prepended < 0:
            raise InvalidArgumentError(f"{len(fragments)} fragments and {len(index)} indices for {len(extents)} dimensions")
        if any(not 0 <= part < count for part, count in zip(index, fragments)):
            raise InvalidArgumentError(f"there is no part {tuple(index)} of {tuple(fragments)}")
        sizes = (1,) * prepended + extents
        shape = tuple(count * size for count, size in zip(fragments, sizes))
        offsets = tuple(part * size for part, size in zip(index, sizes))
        return cls(local, shape, boxes=((offsets, sizes),), kind=kind, replica=replica)

    def placement(self, layout_index: int) -> tuple[Any, ...]:
        """What the native columns take: see columns_placement.c."""
        kind = word("kind", self.kind, KINDS)
        shape, fragments = tuple(self.global_shape), tuple(self.fragments)
        if fragments and len(fragments) != len(shape):
            raise InvalidArgumentError(f"{len(fragments)} fragments for a global shape {shape}")
        if self.layout is not None and not self.boxes:
            return shape, layout_index, (), (), (), 0, kind, int(self.replica), fragments
        boxes = self.boxes or (((0,) * len(shape), shape),)
        offsets = tuple(o for box in boxes for o in box[0])
        sizes = tuple(s for box in boxes for s in box[1])
        for start, size in boxes:
            if len(start) != len(shape) or len(size) != len(shape):
                raise InvalidArgumentError(f"box {start} + {size} and global shape {shape} differ in dimensions")
        return (shape, layout_index, offsets, sizes, self._local_offsets(boxes), len(boxes), kind, int(self.replica),
                fragments)

    def _local_offsets(self, boxes: Sequence[Box]) -> tuple[int, ...]:
        if self.local_offsets is not None:
            if len(self.local_offsets) != len(boxes):
                raise InvalidArgumentError(f"{len(boxes)} boxes need as many local offsets")
            return tuple(self.local_offsets)
        starts, position = [], 0
        for _, size in boxes:
            starts.append(position)
            count = 1
            for extent in size:
                count *= extent
            position += count
        return tuple(starts)
