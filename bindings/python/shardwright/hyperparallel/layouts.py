# SPDX-License-Identifier: Apache-2.0
"""Layouts by duck type: objects with mesh_shape, tensor_map and rank_list (also _tensor_map, _rank_list) give each rank
of the list one box.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from .geometry import Area, MapEntry, infer_slice_area_by_rank

INTERLEAVED = "interleaved_parallel"
_NAMES = ("alias_name", "alias_names", "_alias_name", "_alias_names", "mesh_dim_names")


class TensorMap(NamedTuple):
    """What a layout object says; `positions` gives each global rank of the list its position in the mesh."""

    mesh_shape: tuple[int, ...]
    entries: tuple[MapEntry, ...]
    positions: Mapping[int, int]

    def area(self, shape: tuple[int, ...], rank: int) -> Area:
        """Area of a global rank, which must be in the list."""
        return infer_slice_area_by_rank(self.mesh_shape, self.entries, self.positions[rank], shape)


def refuse_interleaved(layout: Any, where: str) -> None:
    """UnimplementedError for a mesh whose last axis splits tensors inside one device."""
    for attribute in _NAMES:
        names = getattr(layout, attribute, None)
        if isinstance(names, (tuple, list)) and INTERLEAVED in names:
            raise UnimplementedError(f"{where}: the mesh has the axis {INTERLEAVED}, which splits inside one device; "
                                     "layouts with it are not supported", {"axis": INTERLEAVED})


def _first_of(layout: Any, *attributes: str) -> Any:
    return next((value for name in attributes if (value := getattr(layout, name, None)) is not None), None)


def missing_attribute(layout: Any) -> str | None:
    """Name of the attribute that a layout lacks or has as None; None when it is complete."""
    for name in ("mesh_shape", "tensor_map", "rank_list"):
        if _first_of(layout, name, "_" + name) is None:
            return name
    return None


class LayoutReader:
    """Reads the layouts of one plan: a rank list that many tensors share is looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Mapping[int, int]]] = {}

    def read(self, layout: Any, where: str) -> TensorMap:
        """Mesh, map and ranks of a complete layout object; `where` names the tensor in errors.

        Raises InvalidArgumentError (a ValueError) for a missing attribute or a rank list that does not fit the mesh,
        UnimplementedError for interleaved meshes.
        """
        missing = missing_attribute(layout)
        if missing is not None:
            raise InvalidArgumentError(f"{where}: its layout has no {missing}", {"tensor": where, "parameter": missing})
        refuse_interleaved(layout, where)
        mesh = tuple(int(extent) for extent in _first_of(layout, "mesh_shape", "_mesh_shape"))
        entries = tuple(entry if isinstance(entry, int) else tuple(entry)
                        for entry in _first_of(layout, "tensor_map", "_tensor_map"))
        ranks = _first_of(layout, "rank_list", "_rank_list")
        positions = self._positions(ranks)
        if not len(positions) == len(ranks) == math.prod(mesh):
            raise InvalidArgumentError(f"{where}: rank_list {tuple(ranks)} does not give each position of the mesh "
                                       f"{mesh} a rank of its own", {"tensor": where, "parameter": "rank_list"})
        return TensorMap(mesh, entries, positions)

    def _positions(self, ranks: Any) -> Mapping[int, int]:
        known = self._known.get(id(ranks))
        if known is None:
            known = self._known[id(ranks)] = (ranks, {int(rank): place for place, rank in enumerate(ranks)})
        return known[1]


def partial_axes(layout: Any) -> tuple[str, ...]:
    """Reduce operations that are still to be done, such as ("sum",); none when the values are final."""
    partial = getattr(layout, "partial", None)
    if partial is None:
        return ()
    values = partial if isinstance(partial, (tuple, list)) else (partial,)
    return tuple(str(value) for value in values if value not in (None, "", "None"))


def refuse_partial(where: str, operations: tuple[str, ...]) -> FailedPreconditionError:
    """The error of a tensor whose ranks hold summands."""
    return FailedPreconditionError(
        f"{where} is Partial({', '.join(operations)}): its ranks hold summands, not values; reduce it first, or pass "
        "reduce_partial=True to the planner", {"tensor": where, "partial": ",".join(operations)})
