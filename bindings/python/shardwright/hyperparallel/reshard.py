# SPDX-License-Identifier: Apache-2.0
"""ReshardHandler: which slices of which ranks make up the slice of one rank under another layout, and their assembly.

In memory, on numpy arrays, one tensor at a time. A source is asked only when it holds its slice first: ranks whose
coordinate is 0 on every axis of the mesh that the tensor map does not use.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import FailedPreconditionError, InvalidArgumentError
from .faults import ArgumentTypeError
from .geometry import Area, infer_intersection, infer_slice_area_by_rank, rank_id_to_dev_id_list
from .layouts import refuse_interleaved

if TYPE_CHECKING:
    import numpy

_KEYS = ("mesh_shape", "tensor_map", "rank_list")


def check_layout(layout: Any, name: str) -> None:
    """Checks that a layout can be used for resharding; None passes.

    Raises InvalidArgumentError (a ValueError) for a missing attribute or a rank list that does not fit the mesh,
    ArgumentTypeError (a TypeError) for values that are no tuple or list.
    """
    if layout is None:
        return
    for attribute in ("mesh_shape", "_tensor_map", "_rank_list"):
        if not hasattr(layout, attribute):
            raise InvalidArgumentError(f"layout {name} has no attribute {attribute}", {"parameter": name})
    described = layout.to_dict()
    for key in _KEYS:
        if not isinstance(described[key], (tuple, list)):
            raise ArgumentTypeError(f"{key} of layout {name} is a {type(described[key]).__qualname__}; it must be a "
                                    "tuple or list", {"parameter": name})
    devices = math.prod(described["mesh_shape"])
    if len(described["rank_list"]) != devices:
        raise InvalidArgumentError(f"rank_list of layout {name} has {len(described['rank_list'])} ranks for the "
                                   f"{devices} positions of its mesh", {"parameter": name})
    refuse_interleaved(layout, name)


class ReshardHandler:
    """Resharding of one tensor for one target rank.

    Args:
        param_name: name of the tensor, for messages.
        full_shape: global shape.
        from_layout, to_layout: layouts with mesh_shape, _tensor_map, _rank_list and to_dict(); None = the whole tensor
            on rank 0. Not both.
        to_rank_id: global rank that gets the slice; ignored when to_layout is None.
    Raises InvalidArgumentError (a ValueError) and ArgumentTypeError (a TypeError).

    Attributes `from_*` and `to_*` hold the layouts' mesh_shape, tensor_map and rank_list; `global_union_area_map`
    holds, after infer_all_tensor_offset, what each source rank gives, in global coordinates.
    """

    def __init__(self, param_name: str, full_shape: tuple[int, ...], from_layout: Any, to_layout: Any,
                 to_rank_id: int) -> None:
        check_layout(from_layout, "from_layout")
        check_layout(to_layout, "to_layout")
        if from_layout is None and to_layout is None:
            raise InvalidArgumentError("from_layout and to_layout are both None", {"parameter": "to_layout"})
        self.param_name = param_name
        self.full_shape = full_shape
        self.from_mesh_shape, self.from_tensor_map, self.from_rank_list = _described(from_layout, full_shape)
        self.to_mesh_shape, self.to_tensor_map, self.to_rank_list = _described(to_layout, full_shape)
        self.to_rank_id = 0 if to_layout is None else to_rank_id
        if self.to_rank_id not in self.to_rank_list:
            raise InvalidArgumentError(f"rank {to_rank_id} is not in the rank list of to_layout, {self.to_rank_list}",
                                       {"parameter": "to_rank_id"})
        self.from_dev_num = len(self.from_rank_list)
        self.inner_from_rank_list = range(self.from_dev_num)
        self.inner_to_rank_id = self.to_rank_list.index(self.to_rank_id)
        self.inner_deredundancy_from_rank_list = [0] if from_layout is None else self._first_holders()
        self.global_union_area_map: dict[int, Area] = {}
        self._whole: Area = tuple((0, extent) for extent in full_shape)
        self._from_whole, self._to_whole = from_layout is None, to_layout is None
        self._to_area: Area | None = None

    def _first_holders(self) -> list[int]:
        """Positions in the source mesh that hold their slice first."""
        axes = len(self.from_mesh_shape)
        used = {axes - 1 - axis for entry in self.from_tensor_map
                for axis in ((entry,) if isinstance(entry, int) else entry)}
        unused = [axis for axis in range(axes) if axis not in used]
        return [position for position in self.inner_from_rank_list
                if not any(rank_id_to_dev_id_list(self.from_mesh_shape, position)[axis] for axis in unused)]

    @property
    def to_area(self) -> Area:
        """Area of the target rank. FailedPreconditionError before infer_all_tensor_offset."""
        if self._to_area is None:
            raise FailedPreconditionError(f"{self.param_name}: call infer_all_tensor_offset before get_real_tensor")
        return self._to_area

    def infer_all_tensor_offset(self) -> dict[int, Area]:
        """What is needed: per global source rank an area relative to that rank's own slice."""
        self._to_area = self._whole if self._to_whole else infer_slice_area_by_rank(
            self.to_mesh_shape, self.to_tensor_map, self.inner_to_rank_id, self.full_shape)
        self.global_union_area_map = {}
        needed: dict[int, Area] = {}
        for position in self.inner_deredundancy_from_rank_list:
            held = self._whole if self._from_whole else infer_slice_area_by_rank(
                self.from_mesh_shape, self.from_tensor_map, position, self.full_shape)
            common = infer_intersection(held, self._to_area)
            if common is not None:
                rank = self.from_rank_list[position]
                self.global_union_area_map[rank] = common
                needed[rank] = tuple((begin - own[0], end - own[0])
                                     for (begin, end), own in zip(common, held, strict=True))
        return needed

    def get_real_tensor(self, from_tensor_map: Mapping[int, numpy.ndarray[Any, Any]]) -> numpy.ndarray[Any, Any]:
        """Puts the target's slice together.

        Args:
            from_tensor_map: per source rank exactly the part that infer_all_tensor_offset named, as an array.
        Raises InvalidArgumentError (a ValueError) for a missing, surplus or misshapen part and for parts that do not
        fill the slice, ArgumentTypeError (a TypeError) for parts of several dtypes, FailedPreconditionError (a
        RuntimeError) before infer_all_tensor_offset.
        """
        import numpy
        if not from_tensor_map:
            raise InvalidArgumentError("from_tensor_map is empty", {"parameter": "from_tensor_map"})
        shape = tuple(end - begin for begin, end in self.to_area)
        self._check_parts(from_tensor_map, shape)
        result = numpy.empty(shape, dtype=next(iter(from_tensor_map.values())).dtype)
        for rank, part in from_tensor_map.items():
            area = self.global_union_area_map[rank]
            result[tuple(slice(begin - own[0], end - own[0])
                         for (begin, end), own in zip(area, self.to_area, strict=True))] = part
        return result

    def _check_parts(self, parts: Mapping[int, numpy.ndarray[Any, Any]], shape: tuple[int, ...]) -> None:
        surplus = sorted(set(parts) - set(self.global_union_area_map))
        if surplus:
            raise self._wrong(f"ranks {surplus} give nothing to rank {self.to_rank_id}; take them out")
        for rank, area in self.global_union_area_map.items():
            if rank not in parts:
                raise self._wrong(f"the part of rank {rank} is missing")
            expected = tuple(end - begin for begin, end in area)
            if tuple(parts[rank].shape) != expected:
                raise self._wrong(f"the part of rank {rank} has shape {tuple(parts[rank].shape)}, expected {expected}")
        dtypes = {str(part.dtype) for part in parts.values()}
        if len(dtypes) > 1:
            raise ArgumentTypeError(
                f"{self.param_name}: parts have dtypes {', '.join(sorted(dtypes))}; they must be equal",
                {"tensor": self.param_name})
        # Areas of first holders are disjoint, so equal element counts mean that the slice is filled.
        if sum(math.prod(part.shape) for part in parts.values()) != math.prod(shape):
            raise self._wrong(f"the parts do not fill the slice of shape {shape}")

    def _wrong(self, text: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{self.param_name}: {text}", {"tensor": self.param_name})


def _described(layout: Any, full_shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    if layout is None:
        return (1,), (0,) * len(full_shape), [0]
    described = layout.to_dict()
    return described["mesh_shape"], described["tensor_map"], list(described["rank_list"])
