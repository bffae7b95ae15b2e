# SPDX-License-Identifier: Apache-2.0
"""What the planners ask of a tensor framework, and the answers for numpy arrays and plain descriptors.

A plain descriptor is any object with `shape` and `dtype` (a dtype's text, or what prints as one): it can be planned,
not written. Distributed tensors are known by duck type: `to_local()` and a `layout` with mesh_shape, tensor_map and
rank_list. shardwright.Shard values count too.
"""
from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

from ..errors import FailedPreconditionError, InvalidArgumentError
from ..layout import Box, Shard
from .geometry import area_to_chunk, narrow_tensor_by_index
from .layouts import LayoutReader, missing_attribute, partial_axes, refuse_partial
from .model import dtype_code


@dataclass(frozen=True, slots=True)
class Held:
    """What one rank holds of one tensor: global shape, boxes, and the memory of each box."""

    dtype: str
    shape: tuple[int, ...]
    boxes: tuple[Box, ...]
    parts: tuple[Any, ...]
    is_plain: bool
    reduced: tuple[str, ...] = ()

    @property
    def dtype_code(self) -> int:
        """Number of the dtype. InvalidArgumentError when it is not known."""
        return dtype_code(self.dtype)


class Framework:
    """Numpy arrays and plain descriptors; subclasses know a framework's tensors."""

    name = "numpy"

    # ---- which values are tensors, and what they hold ----

    def is_tensor(self, value: Any) -> bool:
        """True for whole tensors. Numpy's scalars are no tensors."""
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.generic):
            return False
        return hasattr(value, "shape") and hasattr(value, "dtype")

    def is_distributed(self, value: Any) -> bool:
        """True for objects that hold a part of a tensor."""
        return isinstance(value, Shard) or (hasattr(value, "to_local") and hasattr(value, "layout"))

    def held(self, where: str, value: Any, rank: int, layouts: LayoutReader, *, reduce_partial: bool = False) -> Held:
        """What `rank` saves of a value. `layouts` is one for all values of a plan.

        Raises InvalidArgumentError (a ValueError) for a layout that lacks an attribute or the rank,
        FailedPreconditionError (a RuntimeError) for summands.
        """
        if isinstance(value, Shard):
            return self._shard(where, value, rank)
        if not self.is_distributed(value):
            return self._whole(value)
        operations = self.partial(value)
        if operations:
            if not reduce_partial:
                raise refuse_partial(where, operations)
            value = self.reduce(where, value)
        return self._part(where, value, rank, layouts, operations)

    def wanted(self, where: str, value: Any, rank: int, layouts: LayoutReader) -> Held | None:
        """What `rank` wants filled; None when it is not in the layout. An incomplete layout counts as none."""
        if isinstance(value, Shard):
            held = self._shard(where, value, rank)
            return held if held.boxes else None
        if not self.is_distributed(value):
            return self._whole(value)
        layout = value.layout
        if layout is not None and missing_attribute(layout) is None:
            if rank not in layouts.read(layout, where).positions:
                return None
        return self._part(where, value, rank, layouts, (), saving=False)

    def alone(self, value: Any) -> Held:
        """The local tensor of a value as a whole tensor, for entries that each rank has for itself."""
        if not self.is_distributed(value):
            return self._whole(value)
        return self._whole(value.local if isinstance(value, Shard) else self.local_of(value))

    def partial(self, value: Any) -> tuple[str, ...]:
        """Reductions that a distributed tensor still needs."""
        return () if value.layout is None else partial_axes(value.layout)

    def reduce(self, where: str, value: Any) -> Any:
        """The distributed tensor with its summands added up, by its own `reduce_partial`. Collective."""
        if not hasattr(value, "reduce_partial"):
            raise FailedPreconditionError(f"{where} holds summands and has no reduce_partial()", {"tensor": where})
        return value.reduce_partial()

    def local_of(self, value: Any) -> Any:
        """The local tensor of a distributed one."""
        return value.to_local()

    def dtype_text(self, local: Any) -> str:
        """dtype as the framework prints it."""
        return str(local.dtype) if hasattr(local, "dtype") else "unknown"

    def _whole(self, value: Any) -> Held:
        shape = _integers(value.shape)
        return Held(self.dtype_text(value), shape, (((0,) * len(shape), shape),), (value,), True)

    def _part(self, where: str, value: Any, rank: int, layouts: LayoutReader, reduced: tuple[str, ...], *,
              saving: bool = True) -> Held:
        local, layout = self.local_of(value), value.layout
        sizes, shape = _integers(local.shape), _integers(value.shape)
        box: Box = ((0,) * len(shape), sizes if saving else shape)
        if layout is not None and (saving or missing_attribute(layout) is None):
            described = layouts.read(layout, where)
            if rank not in described.positions:
                raise InvalidArgumentError(
                    f"{where}: rank {rank} is not in the rank list {tuple(described.positions)} of its layout",
                    {"tensor": where, "rank": str(rank)})
            chunk = area_to_chunk(described.area(shape, rank))
            box = chunk.offsets, chunk.sizes
        if box[1] != sizes:
            raise InvalidArgumentError(f"{where}: rank {rank} holds a local tensor of shape {sizes}, and its layout "
                                       f"gives it {box[1]} of {shape}", {"tensor": where, "rank": str(rank)})
        return Held(self.dtype_text(local), shape, (box,), (local,), False, reduced)

    def _shard(self, where: str, shard: Shard, rank: int) -> Held:
        shape = _integers(shard.global_shape)
        whole: Box = ((0,) * len(shape), shape)
        boxes = tuple(shard.layout.boxes(shape, rank)) if shard.layout is not None else shard.boxes or (whole,)
        if len(boxes) == 1 and _integers(shard.local.shape) == tuple(boxes[0][1]):
            parts: tuple[Any, ...] = (shard.local,)
        else:
            parts = self._runs(where, shard, boxes)
        return Held(self.dtype_text(shard.local), shape, boxes, parts, False)

    def _runs(self, where: str, shard: Shard, boxes: tuple[Box, ...]) -> tuple[Any, ...]:
        """Boxes that lie one behind the other in a contiguous local tensor."""
        if boxes and not self.is_contiguous(shard.local):
            raise InvalidArgumentError(f"{where}: several boxes need a contiguous local tensor", {"tensor": where})
        flat, parts, position = shard.local.reshape(-1), [], 0
        for index, (_, sizes) in enumerate(boxes):
            begin = position if shard.local_offsets is None else shard.local_offsets[index]
            position = begin + math.prod(sizes)
            if position > math.prod(_integers(flat.shape)):
                raise InvalidArgumentError(f"{where}: its boxes need {position} elements, the local tensor has "
                                           f"{math.prod(_integers(flat.shape))}", {"tensor": where})
            parts.append(flat[begin:position].reshape(sizes))
        return tuple(parts)

    # ---- memory ----

    def current_rank(self) -> int:
        """Rank of this process; 0 without a process group."""
        return 0

    def is_contiguous(self, local: Any) -> bool:
        """True when elements lie row-major without gaps."""
        flags = getattr(local, "flags", None)
        return flags is None or bool(flags.c_contiguous)

    def content(self, local: Any) -> Any:
        """All bytes of a tensor, row-major, as a buffer; None for descriptors without memory."""
        if not hasattr(local, "tobytes"):
            return None
        if not math.prod(_integers(local.shape)):
            return b""
        try:
            return memoryview(local).cast("B")
        except (TypeError, ValueError, BufferError):  # not contiguous, or a dtype that buffers cannot name
            return local.tobytes()

    def check_target(self, where: str, local: Any) -> None:
        """Raises InvalidArgumentError when a load could not write into the tensor."""
        flags = getattr(local, "flags", None)
        if flags is not None and not flags.writeable:
            raise InvalidArgumentError(f"{where} is read-only; a load cannot fill it", {"tensor": where})

    def view(self, local: Any, offsets: tuple[int, ...], lengths: tuple[int, ...]) -> Any:
        """Writable view of a part of a local tensor; all of it where either is empty."""
        return narrow_tensor_by_index(local, offsets, lengths)

    def is_place(self, local: Any, offsets: tuple[int, ...], lengths: tuple[int, ...], tensor: Any) -> bool:
        """True when a tensor is that part of the local tensor: the same elements in the same memory."""
        view = self.view(local, offsets, lengths)
        places = [(array["data"][0], array.get("strides"), array["shape"]) for array in
                  (getattr(view, "__array_interface__", None), getattr(tensor, "__array_interface__", None)) if array]
        return len(places) == 2 and places[0] == places[1]

    def write(self, local: Any, offsets: tuple[int, ...], lengths: tuple[int, ...], source: Any) -> None:
        """Copies all elements of a tensor into a part of equal shape."""
        self.view(local, offsets, lengths)[...] = source


def _integers(shape: Any) -> tuple[int, ...]:
    return tuple(int(extent) for extent in shape)
