# SPDX-License-Identifier: Apache-2.0
"""Placements (one per mesh axis) and tensor maps (one entry per tensor dimension) as two spellings of one layout.

A placement is "replicate", ("shard", dim) or ("partial", operation), or an object with is_replicate(), is_shard() and
is_partial(), as torch and HyperParallel have them. Results are rows of the first kind.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InvalidArgumentError
from .geometry import MapEntry

Row = tuple[Any, ...]
DEFAULT_REDUCTION = "sum"


def placement_row(placement: Any) -> Row:
    """A placement as ("replicate",), ("shard", dim) or ("partial", operation). InvalidArgumentError for anything
    else."""
    if isinstance(placement, str):
        placement = (placement,)
    if isinstance(placement, (tuple, list)) and placement:
        row = tuple(placement)
        if row == ("replicate",) or (row[0] == "shard" and len(row) == 2) or (row[0] == "partial" and len(row) <= 2):
            return row if row != ("partial",) else ("partial", DEFAULT_REDUCTION)
    elif hasattr(placement, "is_replicate"):
        if placement.is_replicate():
            return ("replicate",)
        if placement.is_partial():
            return ("partial", str(getattr(placement, "reduce_op", DEFAULT_REDUCTION)))
        if placement.is_shard():
            return ("shard", int(placement.dim))
    raise InvalidArgumentError(f"placement {placement!r} is not known", {"parameter": "placements"})


def placements_to_tensor_map(placements: Sequence[Any], ndim: int, *,
                             single_axis: bool = False) -> tuple[tuple[MapEntry, ...], tuple[str | None, ...]]:
    """Tensor map, and per mesh axis the reduction that is still to be done, None where there is none.

    Args:
        placements: one per mesh axis.
        ndim: dimensions of the tensor; negative shard dimensions count from the end.
        single_axis: refuse two axes on one dimension, as HyperParallel does; otherwise the first axis is the outermost.
    Raises InvalidArgumentError.
    """
    if ndim < 0:
        raise InvalidArgumentError(f"a tensor cannot have {ndim} dimensions", {"parameter": "ndim"})
    axes: list[list[int]] = [[] for _ in range(ndim)]
    partial: list[str | None] = [None] * len(placements)
    for position, placement in enumerate(placements):
        kind, *rest = placement_row(placement)
        if kind == "partial":
            partial[position] = rest[0]
        elif kind == "shard":
            dim = rest[0]
            if not -ndim <= dim < ndim:
                raise InvalidArgumentError(f"Shard({dim}) is out of bounds for {ndim} dimensions",
                                           {"parameter": "placements"})
            axes[dim].append(len(placements) - 1 - position)
    for dim, used in enumerate(axes):
        if single_axis and len(used) > 1:
            raise InvalidArgumentError(f"dimension {dim} is sharded by {len(used)} mesh axes; this form has one axis "
                                       "per dimension", {"parameter": "placements"})
    return tuple(tuple(used) if len(used) > 1 else used[0] if used else -1 for used in axes), tuple(partial)


def tensor_map_to_placements(mesh_ndim: int, tensor_map: Sequence[MapEntry],
                             partial: Sequence[str | None] | None = None) -> tuple[Row, ...]:
    """One row per mesh axis: shard where the map names the axis, else partial where `partial` says so, else replicate.

    The order of axes inside one entry of the map is not in the rows. Raises InvalidArgumentError for an axis that the
    mesh lacks, and for one that both shards and holds summands.
    """
    rows: list[Row] = [("replicate",)] * mesh_ndim
    for position, operation in enumerate(partial or ()):
        if operation is not None:
            rows[position] = ("partial", operation)
    for dim, entry in enumerate(tensor_map):
        for axis in (entry,) if isinstance(entry, int) else entry:
            if axis == -1:
                continue
            position = mesh_ndim - 1 - axis
            if not 0 <= position < mesh_ndim:
                raise InvalidArgumentError(
                    f"tensor map {tuple(tensor_map)} names axis {axis} of a mesh with {mesh_ndim}",
                    {"parameter": "tensor_map"})
            if rows[position][0] != "replicate":
                raise InvalidArgumentError(f"mesh axis {position} shards dimension {dim} and is {rows[position]} too",
                                           {"parameter": "tensor_map"})
            rows[position] = ("shard", dim)
    return tuple(rows)
