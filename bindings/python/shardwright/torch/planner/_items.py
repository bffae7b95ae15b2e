# SPDX-License-Identifier: Apache-2.0
"""Lists and dicts of plans that stay plan buffers until somebody looks into them.

`PlanItems` is the list of a SavePlan. Untouched it is a plan buffer, and travels between processes as that; touched it
is an ordinary list of torch's WriteItems, and what the host does to them counts. `StoredEntries` is the dict of a
Metadata that is made of the merged plan when it is first read, and is pickled as a plain dict. Thread-safe to touch.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadItemType, ReadItem, TensorWriteData, WriteItem, WriteItemType

from ..._library import native
from ...errors import InvalidArgumentError
from ...tensor import dtype_number
from . import _engine
from ._engine import Columns
from ._lazy import Fillable, touches_first, touching
from ._values import write_items


def _dtypes() -> dict[torch.dtype, int]:
    """Numbers of the dtypes that plan buffers know."""
    found = {}
    for dtype in {value for value in vars(torch).values() if isinstance(value, torch.dtype)}:
        try:
            number = dtype_number(str(dtype).removeprefix("torch."))
        except InvalidArgumentError:
            continue
        if number >> 8 == 8 * dtype.itemsize:
            found[dtype] = number
    return found


def _classes() -> tuple[Any, ...]:
    numbers = _dtypes()
    return (
        MetadataIndex, WriteItem, TensorWriteData, ChunkStorageMetadata, TensorProperties, torch.Size,
        WriteItemType.TENSOR, WriteItemType.SHARD, WriteItemType.BYTE_IO, torch.strided, torch.contiguous_format,
        numbers, {number: dtype for dtype, number in numbers.items()}, torch.Tensor, torch.nn.Parameter,
        ReadItem, LoadItemType.TENSOR, LoadItemType.BYTE_IO)


native.shw_py_items_configure(_classes)  # at the first plan: an import must not use the library, children may be forked


def columns_of_items(items: list[Any]) -> Columns | None:
    """A list of WriteItems in columns; None where they cannot hold what the host made of it."""
    columns = native.shw_py_items_encode(items)
    return None if columns is None else Columns(*columns)


def plan_of_items(items: list[Any]) -> bytes | None:
    """Plan buffer of a list of WriteItems; None where columns cannot hold it."""
    plan = items.plan if isinstance(items, PlanItems) else None
    if plan is not None:
        return plan
    columns = columns_of_items(items)
    return None if columns is None else _engine.describe(columns)


def plan_of_state(state_dict: dict[str, Any]) -> tuple[bytes, list[str]] | None:
    """Plan buffer of a flat state dict, and the names of its byte objects; None where it holds what columns cannot."""
    may_be_pinned = torch.accelerator.is_available()
    found = native.shw_py_items_collect(state_dict, write_items, may_be_pinned)
    return None if found is None else (_engine.describe(Columns(*found[0])), found[1])


def kept_items(items: list[Any], columns: Columns, kept: _engine.Plan) -> list[Any]:
    """The items of a list that survived a merge, with their final numbers. `columns` are those of the list."""
    return native.shw_py_items_keep(items, tuple(columns), kept)


# ---- containers that are filled on touch ----

def _bytes_of(plan: _engine.Plan | None) -> bytes | None:
    return plan if plan is None or isinstance(plan, bytes) else bytes(plan)


class _Items(list[Any], Fillable):
    """A list of WriteItems that was a plan buffer (`buffer`, None by now); pickled as one again. `kept`: the coordinator that
    sent it keeps plans. `made_for`: digest of the description whose share this is, where a planner has noted it; it does not
    travel."""

    __slots__ = ("buffer", "digests", "kept", "made_for")
    buffer: _engine.Plan | None
    digests: dict[str, bytes] | None
    kept: bool
    made_for: bytes | None

    @property
    def plan(self) -> bytes | None:
        """The plan buffer while nobody has looked into the list."""
        return _bytes_of(self.buffer)

    def __reduce_ex__(self, protocol: Any) -> Any:
        plan = plan_of_items(self)
        if plan is None:
            return list, (), None, iter(self)
        return PlanItems, (plan, self.digests, self.kept)


@touches_first(list)
class PlanItems(_Items):
    """A list of WriteItems that is still a plan buffer.

    Attributes: `plan`, the buffer as bytes; `digests`, 16 bytes per byte object whose content is known, by name, or None.
    """

    __slots__ = ()

    def __init__(self, plan: _engine.Plan, digests: dict[str, bytes] | None = None, kept: bool = False) -> None:
        super().__init__()
        self.buffer, self.digests, self.kept, self.made_for = plan, digests, kept, None

    def __len__(self) -> int:
        plan = self.buffer
        return super().__len__() if plan is None else _engine.box_count(plan)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __radd__(self, other: Iterable[Any]) -> list[Any]:
        return [*other, *self]

    def _touch(self) -> None:
        with touching:
            if self.buffer is not None:
                made = native.shw_py_items_decode(self.buffer)
                list.extend(self, made)
                self.buffer = None
                self.__class__ = _Items  # type: ignore[assignment]  # equal layout: from here on a plain list


class _Entries(dict[str, Any], Fillable):
    """The entries of a Metadata that were a merged plan (`buffer`, None by now); pickled as a plain dict."""

    __slots__ = ("buffer",)
    buffer: _engine.Plan | None

    @property
    def plan(self) -> bytes | None:
        """The merged plan while nobody has looked into the dict."""
        return _bytes_of(self.buffer)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (), None, None, iter(self.items())


@touches_first(dict)
class StoredEntries(_Entries):
    """The entries of a Metadata as a merged plan that nobody has looked into."""

    __slots__ = ()

    def __init__(self, plan: _engine.Plan) -> None:
        super().__init__()
        self.buffer = plan

    def _touch(self) -> None:
        with touching:
            if self.buffer is not None:
                dict.update(self, stored_of(self.buffer))
                self.buffer = None
                self.__class__ = _Entries  # type: ignore[assignment]  # equal layout


def stored_of(merged: _engine.Plan) -> dict[str, Any]:
    """The entries of torch's Metadata for a merged plan."""
    found: dict[str, Any] = {}
    for name, tensor in native.shw_py_items_stored(merged):
        if tensor is None:
            found[name] = BytesStorageMetadata()
        else:
            size, properties, chunks = tensor
            found[name] = TensorStorageMetadata(properties=properties, size=size, chunks=chunks)
    return found
