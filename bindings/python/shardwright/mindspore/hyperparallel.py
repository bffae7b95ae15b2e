# SPDX-License-Identifier: Apache-2.0
"""HyperParallel's standard planners over MindSpore tensors and parameters, and distributed tensors by duck type.

The names are those of shardwright.hyperparallel. Tensors are read and filled through asnumpy(), which shares their
memory on CPU. In-place copies into slices of a MindSpore tensor are lost on CPU, and those out of slices fail (2.10,
executed), so acquire_tensor gives a copy where a part of a tensor is asked for, and apply_tensor puts it back.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import mindspore
from mindspore.mint import distributed

from ..errors import InvalidArgumentError
from ..hyperparallel import layout_files as _layout_files
from ..hyperparallel import load as _load
from ..hyperparallel import save as _save
from ..hyperparallel.chunk_lists import chunk_list
from ..hyperparallel.framework import Framework
from ..hyperparallel.geometry import narrow_tensor_by_index as _narrow
from ..hyperparallel.neutral import *  # noqa: F403
from ..hyperparallel.neutral import ChunkStorageMetadata
from ..hyperparallel.neutral import __all__ as _neutral

__all__ = _neutral + [
    "StandardLoadPlanner", "StandardSavePlanner", "MindSporeFramework", "create_chunk_list_for_tensor",
    "get_current_layout", "get_global_layout", "narrow_tensor_by_index"
]


class MindSporeFramework(Framework):
    """MindSpore tensors and parameters."""

    name = "mindspore"

    def is_tensor(self, value: Any) -> bool:
        """True for MindSpore tensors and parameters."""
        return isinstance(value, mindspore.Tensor)

    def current_rank(self) -> int:
        """Rank in the default process group; 0 without one."""
        return int(distributed.get_rank()) if distributed.is_initialized() else 0

    def is_contiguous(self, local: Any) -> bool:
        """True when elements lie row-major without gaps."""
        return bool(local.is_contiguous())

    def content(self, local: Any) -> Any:
        """All bytes of a tensor, row-major."""
        return super().content(local.asnumpy())

    def check_target(self, where: str, local: Any) -> None:
        """Raises InvalidArgumentError for slices and transposed tensors: what is copied into them is lost."""
        if not local.is_contiguous() or local.storage_offset():
            raise InvalidArgumentError(f"{where} is a view of another tensor, and MindSpore loses what is copied into "
                                       "views; use a tensor of its own", {"tensor": where})

    def view(self, local: Any, offsets: tuple[int, ...], lengths: tuple[int, ...]) -> Any:
        """The tensor itself, or a copy of a part of it."""
        if _is_whole(local, offsets, lengths):
            return local
        part = super().view(local.asnumpy(), offsets, lengths)
        return mindspore.Tensor(part.copy(), local.dtype)

    def is_place(self, local: Any, offsets: tuple[int, ...], lengths: tuple[int, ...], tensor: Any) -> bool:
        """True when a tensor is the local one."""
        return (_is_whole(local, offsets, lengths) and isinstance(tensor, mindspore.Tensor)
                and tensor.dtype == local.dtype and tensor.shape == local.shape
                and tensor.data_ptr() == local.data_ptr())

    def write(self, local: Any, offsets: tuple[int, ...], lengths: tuple[int, ...], source: Any) -> None:
        """Copies all elements of a tensor into a part of equal shape, also where asnumpy() is a copy."""
        content = local.asnumpy()
        given = source.asnumpy() if isinstance(source, mindspore.Tensor) else source
        super().view(content, offsets, lengths)[...] = given
        if content.size and content.ctypes.data != local.data_ptr():
            local.copy_(mindspore.Tensor(content, local.dtype))


def _is_whole(local: Any, offsets: tuple[int, ...], lengths: tuple[int, ...]) -> bool:
    return not offsets or not lengths or (tuple(lengths) == tuple(local.shape) and not any(offsets))


_MINDSPORE = MindSporeFramework()


class StandardSavePlanner(_save.StandardSavePlanner):
    """The save planner of shardwright.hyperparallel over MindSpore tensors; arguments and attributes are the
    same."""

    framework: ClassVar[Framework] = _MINDSPORE


class StandardLoadPlanner(_load.StandardLoadPlanner):
    """shardwright.hyperparallel.StandardLoadPlanner over MindSpore tensors; arguments and attributes are the
    same."""

    framework: ClassVar[Framework] = _MINDSPORE


def create_chunk_list_for_tensor(obj: Any, rank: int | None = None) -> list[ChunkStorageMetadata]:
    """Chunks of the global tensor that a rank (None = that of the default process group) wants filled.

    Raises InvalidArgumentError (a ValueError) for what is no tensor.
    """
    return chunk_list(_MINDSPORE, obj, rank)


def narrow_tensor_by_index(tensor: Any, offsets: Sequence[int], lengths: Sequence[int]) -> Any:
    """The part of a tensor from `offsets` on, `lengths` elements long; the tensor itself when either is empty or it is
    all of it.

    A part of a MindSpore tensor is a copy: other kernels take the memory of a slice for that of its whole tensor.
    """
    if isinstance(tensor, mindspore.Tensor):
        return _MINDSPORE.view(tensor, tuple(offsets), tuple(lengths))
    return _narrow(tensor, offsets, lengths)


def get_current_layout(cell: Any, rank: int | None = None) -> _layout_files.LayoutFile:
    """Layouts of a cell's parameters by their names; `rank` None = that of the default process group."""
    return _layout_files.get_current_layout(cell, _MINDSPORE.current_rank() if rank is None else rank)


def get_global_layout(cell: Any, process_group: Any = None) -> _layout_files.LayoutFile:
    """Layouts of all ranks, gathered over a process group (None = the default one). Collective where there is one."""
    if not distributed.is_initialized():
        return _layout_files.get_global_layout(cell)

    def gathered(mine: _layout_files.LayoutFile) -> list[_layout_files.LayoutFile]:
        parts: list[Any] = [None] * distributed.get_world_size(process_group)
        distributed.all_gather_object(parts, mine, group=process_group)
        return parts

    return _layout_files.get_global_layout(cell, _MINDSPORE.current_rank(), gathered)
