# SPDX-License-Identifier: Apache-2.0
"""Layouts and shards: which boxes of a tensor a rank holds."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ._library import native
from ._options import KINDS, word
from .errors import InvalidArgumentError

_PLACEMENTS = {"replicate": 0, "shard": 1, "strided_shard": 2, "partial": 3}
Box = tuple[tuple[int, ...], tuple[int, ...]]


class Layout:
    """A mesh of ranks and one placement per mesh axis. Immutable.

    Args:
        mesh: extents of the mesh, such as (2, 4).
        placements: per axis "replicate", ("shard", dim) or a tensor dimension as int (short for shard).
        ranks: global ranks in row-major order of the mesh; None = 0, 1, 2, ...
        names: axis names.
    Raises InvalidArgumentError, and UnimplementedError for strided and partial placements.
    """

    def __init__(self, mesh: Sequence[int], placements: Sequence[Any], *, ranks: Sequence[int] | None = None,
                 names: Sequence[str] | None = None) -> None:
        kinds, dims, factors = [], [], []
        for placement in placements:
            row = (placement,) if isinstance(placement, (str, int)) else tuple(placement)
            if isinstance(row[0], int):
                row = ("shard", *row)
            kinds.append(word("placement", row[0], _PLACEMENTS))
            dims.append(int(row[1]) if len(row) > 1 else 0)
            factors.append(int(row[2]) if len(row) > 2 else 0)
        if len(kinds) != len(mesh):
            raise InvalidArgumentError(f"a mesh of {len(mesh)} axes needs as many placements, found {len(kinds)}")
        self.mesh = tuple(int(extent) for extent in mesh)
        self.placements = tuple(placements)
        texts = None if names is None else [name.encode() for name in names]
        self._handle: Any = native.shw_py_layout_create((self.mesh, texts, ranks, kinds, dims, factors))

    @property
    def rank_count(self) -> int:
        """Number of ranks in the mesh."""
        return int(native.shw_layout_rank_count(self._handle))

    def boxes(self, shape: Sequence[int], rank: int) -> list[Box]:
        """Boxes (offsets, sizes) of a tensor of this global shape that `rank` holds; none outside the mesh."""
        found: list[Box] = native.shw_py_layout_boxes(self._handle, tuple(shape), rank)
        return found

    def __repr__(self) -> str:
        return f"shardwright.Layout(mesh={self.mesh}, placements={self.placements})"

    def __reduce__(self) -> Any:
        raise TypeError("a Layout is not pickled; make it again from mesh and placements")


@dataclass(frozen=True)
class Shard:
    """A leaf of a state that is a part of a tensor.

    Either `boxes` (offsets and sizes in the global tensor; more than one: the local tensor is contiguous and holds them
    one behind the other, or at `local_offsets`, counted in elements), or `layout`, whose boxes of this rank the local
    tensor holds. Neither means that the local tensor is the whole.
    """

    local: Any
    global_shape: tuple[int, ...]
    boxes: tuple[Box, ...] = ()
    layout: Layout | None = None
    local_offsets: tuple[int, ...] | None = None
    kind: str = "auto"

    def placement(self, layout_index: int) -> tuple[Any, ...]:
        """What the native columns take: see columns_collect.c."""
        kind = word("kind", self.kind, KINDS)
        shape = tuple(self.global_shape)
        if self.layout is not None:
            return shape, layout_index, (), (), (), 0, kind
        boxes = self.boxes or (((0,) * len(shape), shape),)
        offsets = tuple(o for box in boxes for o in box[0])
        sizes = tuple(s for box in boxes for s in box[1])
        for start, size in boxes:
            if len(start) != len(shape) or len(size) != len(shape):
                raise InvalidArgumentError(f"box {start} + {size} and global shape {shape} differ in dimensions")
        return shape, 0, offsets, sizes, self._local_offsets(boxes), len(boxes), kind

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
