# SPDX-License-Identifier: Apache-2.0
"""HyperParallel's standard planners over torch tensors, DTensors, and distributed tensors by duck type.

The names are those of shardwright.hyperparallel. They are kept apart from shardwright.torch.dcp.planner, where torch's
own names stand for torch's own classes.
"""
from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import torch.distributed as dist

from ..errors import InvalidArgumentError
from ..hyperparallel import layout_files as _layout_files
from ..hyperparallel import load as _load
from ..hyperparallel import save as _save
from ..hyperparallel.chunk_lists import chunk_list
from ..hyperparallel.framework import Framework, Held
from ..hyperparallel.geometry import narrow_tensor_by_index
from ..hyperparallel.layouts import LayoutReader
from ..hyperparallel.neutral import *  # noqa: F403
from ..hyperparallel.neutral import ChunkStorageMetadata
from ..hyperparallel.neutral import __all__ as _neutral
from ._leaves import layout_of

try:
    from torch.distributed.tensor import DTensor as _DTensor
except ImportError:  # torch built without distributed
    _DTensor = None  # type: ignore[assignment,misc]

__all__ = _neutral + ["StandardLoadPlanner", "StandardSavePlanner", "TorchFramework", "create_chunk_list_for_tensor",
                      "get_current_layout", "get_global_layout", "narrow_tensor_by_index"]


class TorchFramework(Framework):
    """torch tensors of any device, DTensors of any mesh and placement."""

    name = "torch"

    def is_tensor(self, value: Any) -> bool:
        """True for torch tensors."""
        return isinstance(value, torch.Tensor)

    def is_distributed(self, value: Any) -> bool:
        """True for DTensors and for other objects that hold a part of a tensor."""
        return _is_dtensor(value) or super().is_distributed(value)

    def wanted(self, where: str, value: Any, rank: int, layouts: LayoutReader) -> Held | None:
        """What `rank` wants filled; None when it is not in the layout."""
        if not _is_dtensor(value):
            return super().wanted(where, value, rank, layouts)
        return self._of_dtensor(where, value, rank, ()) if rank in value.device_mesh.mesh else None

    def partial(self, value: Any) -> tuple[str, ...]:
        """Reductions that a distributed tensor still needs."""
        if not _is_dtensor(value):
            return super().partial(value)
        return tuple(str(getattr(p, "reduce_op", "sum")) for p in value.placements if p.is_partial())

    def reduce(self, where: str, value: Any) -> Any:
        """The tensor with its summands added up. Collective over its mesh."""
        if not _is_dtensor(value):
            return super().reduce(where, value)
        from torch.distributed.tensor import Replicate
        with torch.no_grad():
            return value.redistribute(placements=[Replicate() if p.is_partial() else p for p in value.placements])

    def local_of(self, value: Any) -> Any:
        """The local tensor, when its values have arrived."""
        with torch.no_grad():
            local = value.to_local()
        return local.wait() if hasattr(local, "wait") else local

    def _part(self, where: str, value: Any, rank: int, layouts: LayoutReader, reduced: tuple[str, ...], *,
              saving: bool = True) -> Held:
        if not _is_dtensor(value):
            return super()._part(where, value, rank, layouts, reduced, saving=saving)
        if rank not in value.device_mesh.mesh:
            raise InvalidArgumentError(f"{where}: rank {rank} is not in its mesh {value.device_mesh.mesh.tolist()}",
                                       {"tensor": where, "rank": str(rank)})
        return self._of_dtensor(where, value, rank, reduced)

    def _of_dtensor(self, where: str, value: Any, rank: int, reduced: tuple[str, ...]) -> Held:
        local, shape = self.local_of(value), tuple(int(extent) for extent in value.shape)
        pieces = layout_of(value.device_mesh, value.placements, None).pieces(shape, rank)
        boxes = tuple((offsets, sizes) for offsets, sizes, _ in pieces)
        if sum(math.prod(sizes) for _, sizes in boxes) != local.numel():
            raise InvalidArgumentError(f"{where}: rank {rank} holds a local tensor of shape {tuple(local.shape)}, which "
                                       f"does not fit the boxes {boxes} of its placements",
                                       {"tensor": where, "rank": str(rank)})
        parts = tuple(window(local, begin, sizes) for _, sizes, begin in pieces)
        return Held(self.dtype_text(local), shape, boxes, parts, False, reduced)

    # ---- memory ----

    def current_rank(self) -> int:
        """Rank in the default process group; 0 without one."""
        return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0

    def is_contiguous(self, local: Any) -> bool:
        """True when elements lie row-major without gaps."""
        return bool(local.is_contiguous())

    def content(self, local: Any) -> Any:
        """All bytes of a tensor, row-major; None on the meta device."""
        if local.device.type == "meta":
            return None
        host = local.detach().resolve_conj().resolve_neg().to("cpu").contiguous()
        size = host.numel() * host.element_size()
        if not size:
            return b""
        content = (ctypes.c_char * size).from_address(host.data_ptr())
        content.owner = host  # the memory lives as long as the buffer
        return content

    def check_target(self, where: str, local: Any) -> None:
        """Raises InvalidArgumentError for tensors without memory."""
        if local.device.type == "meta":
            raise InvalidArgumentError(f"{where} is on the meta device and has no memory; materialise it first",
                                       {"tensor": where})

    def view(self, local: Any, offsets: tuple[int, ...], lengths: tuple[int, ...]) -> Any:
        """View of a part of the detached tensor: it may be written, also when the tensor is a trainable parameter."""
        with torch.no_grad():
            return super().view(local.detach(), offsets, lengths)

    def is_place(self, local: Any, offsets: tuple[int, ...], lengths: tuple[int, ...], tensor: Any) -> bool:
        """True when a tensor is that part of the local tensor."""
        view = self.view(local, offsets, lengths)
        return (isinstance(tensor, torch.Tensor) and tensor.device == view.device and tensor.dtype == view.dtype
                and tensor.data_ptr() == view.data_ptr() and tensor.shape == view.shape
                and tensor.stride() == view.stride())

    def write(self, local: Any, offsets: tuple[int, ...], lengths: tuple[int, ...], source: Any) -> None:
        """Copies all elements of a tensor into a part of equal shape, and counts as a change for autograd."""
        with torch.no_grad():
            self.view(local, offsets, lengths).copy_(torch.as_tensor(source))


def window(local: Any, begin: int, sizes: tuple[int, ...]) -> Any:
    """The part of a local tensor that begins at its row-major element `begin`."""
    places = []
    for extent in reversed(local.shape):
        begin, place = divmod(begin, max(extent, 1))
        places.append(place)
    return local[tuple(slice(place, place + size) for place, size in zip(reversed(places), sizes, strict=True))]


def _is_dtensor(value: Any) -> bool:
    return _DTensor is not None and isinstance(value, _DTensor)


_TORCH = TorchFramework()


class StandardSavePlanner(_save.StandardSavePlanner):
    """The save planner of shardwright.hyperparallel over torch tensors; arguments and attributes are the same."""

    framework: ClassVar[Framework] = _TORCH


class StandardLoadPlanner(_load.StandardLoadPlanner):
    """shardwright.hyperparallel.StandardLoadPlanner over torch tensors; arguments and attributes are the same.

    Trainable parameters may be targets.
    """

    framework: ClassVar[Framework] = _TORCH


def create_chunk_list_for_tensor(obj: Any, rank: int | None = None) -> list[ChunkStorageMetadata]:
    """Chunks of the global tensor that a rank (None = that of the default process group) wants filled.

    Raises InvalidArgumentError (a ValueError) for what is no tensor.
    """
    return chunk_list(_TORCH, obj, rank)


def get_current_layout(cell: Any, rank: int | None = None) -> _layout_files.LayoutFile:
    """Layouts of a module's parameters by their names; `rank` None = that of the default process group."""
    return _layout_files.get_current_layout(cell, _TORCH.current_rank() if rank is None else rank)


def get_global_layout(cell: Any, process_group: Any = None) -> _layout_files.LayoutFile:
    """Layouts of all ranks, gathered over a process group (None = the default one). Collective where there is one."""
    if not (dist.is_available() and dist.is_initialized()):
        return _layout_files.get_global_layout(cell)

    def gathered(mine: _layout_files.LayoutFile) -> list[_layout_files.LayoutFile]:
        parts: list[Any] = [None] * dist.get_world_size(process_group)
        dist.all_gather_object(parts, mine, group=process_group)
        return parts

    return _layout_files.get_global_layout(cell, _TORCH.current_rank(), gathered)
