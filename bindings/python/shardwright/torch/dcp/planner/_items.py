# SPDX-License-Identifier: Apache-2.0
"""Lists and dicts of plans that stay plan buffers until somebody looks into them.

`PlanItems` is the list of a SavePlan. Untouched it is a local plan, of which its rank keeps all or, after a merge, what
numbers say; it travels between processes as that. Touched it is an ordinary list of torch's WriteItems, and what the host
does to them counts. `StoredEntries` is the dict of a
Metadata that is made of the merged plan when it is first read, and is pickled as a plain dict. Thread-safe to touch.
"""
from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadItemType, ReadItem, TensorWriteData, WriteItem, WriteItemType

from ....errors import InvalidArgumentError
from ....tensor import dtype_bits, dtype_number
from ..._library import native as torch_native
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
        if dtype_bits(number) == 8 * dtype.itemsize:
            found[dtype] = number
    return found


def _classes() -> tuple[Any, ...]:
    numbers = _dtypes()
    return (
        MetadataIndex, WriteItem, TensorWriteData, ChunkStorageMetadata, TensorProperties, torch.Size,
        WriteItemType.TENSOR, WriteItemType.SHARD, WriteItemType.BYTE_IO, torch.strided, torch.contiguous_format,
        numbers, {number: dtype for dtype, number in numbers.items()}, torch.Tensor, torch.nn.Parameter,
        ReadItem, LoadItemType.TENSOR, LoadItemType.BYTE_IO)


torch_native.items_configure(_classes)  # at the first plan: an import must not use the library, children may be forked


def columns_of_items(items: list[Any]) -> Columns | None:
    """A list of WriteItems in columns; None where they cannot hold what the host made of it."""
    columns = torch_native.items_encode(items)
    return None if columns is None else Columns(*columns)


class Untouched(NamedTuple):
    """What a list of items stands for: a local plan, and the numbers of what its rank keeps of it (planning.Merged), None
    before a merge."""

    plan: _engine.Plan
    numbers: bytes | None = None

    @property
    def digest(self) -> bytes:
        """16 bytes that are equal for equal items."""
        described = _engine.digest(self.plan)
        return described if self.numbers is None else hashlib.blake2b(described + self.numbers, digest_size=16).digest()


def untouched(items: list[Any]) -> Untouched | None:
    """What a list stands for into which nobody has looked; None for all others."""
    return items.stands_for if isinstance(items, PlanItems) else None


def described(items: list[Any]) -> Untouched | None:
    """What a list of WriteItems stands for, of whatever kind it is; None where columns cannot hold it."""
    found = untouched(items)
    if found is not None:
        return found
    columns = columns_of_items(items)
    return None if columns is None else Untouched(_engine.describe(columns))


def plan_of_state(state_dict: dict[str, Any]) -> tuple[bytes, list[str]] | None:
    """Plan buffer of a flat state dict, and the names of its byte objects; None where it holds what columns cannot."""
    may_be_pinned = torch.accelerator.is_available()
    found = torch_native.items_collect(state_dict, write_items, may_be_pinned)
    return None if found is None else (_engine.describe(Columns(*found[0])), found[1])


def kept_items(items: list[Any], numbers: memoryview) -> list[Any]:
    """The items of a list that its rank keeps after a merge, each with its number."""
    return torch_native.items_keep(items, numbers)


# ---- containers that are filled on touch ----

def _bytes_of(plan: _engine.Plan | None) -> bytes | None:
    return plan if plan is None or isinstance(plan, bytes) else bytes(plan)


class _Items(list[Any], Fillable):
    """A list of WriteItems that was a plan buffer (`stands_for`, None by now); pickled as one again. `cached`: the coordinator
    that sent it remembers plans. `made_for`: digest of the description that it was made for, where a planner has noted it; it
    does not travel."""

    __slots__ = ("stands_for", "digests", "cached", "made_for")
    stands_for: Untouched | None
    digests: dict[str, bytes] | None
    cached: bool
    made_for: bytes | None

    @property
    def plan(self) -> bytes | None:
        """The local plan while nobody has looked into the list."""
        found = self.stands_for
        return None if found is None else _bytes_of(found.plan)

    def __reduce_ex__(self, protocol: Any) -> Any:
        found = described(self)
        if found is None:
            return list, (), None, iter(self)
        return PlanItems, (_bytes_of(found.plan), found.numbers, self.digests, self.cached)


@touches_first(list)
class PlanItems(_Items):
    """A list of WriteItems that is still a plan buffer.

    Args:
        plan: a local plan.
        numbers: uint32 per box of the plan as `planning.merge` gives them, for a list of what its rank keeps; None = all of
            it, not numbered.
        digests: 16 bytes per byte object whose content is known, by name, or None.

    Attributes: `plan` as bytes, `digests`, and `stands_for`: plan and numbers, None once somebody has looked into the list.
    """

    __slots__ = ()

    def __init__(self, plan: _engine.Plan, numbers: Any = None, digests: dict[str, bytes] | None = None,
                 cached: bool = False) -> None:
        super().__init__()
        self.stands_for = Untouched(plan, None if numbers is None else bytes(numbers))
        self.digests, self.cached, self.made_for = digests, cached, None

    def __len__(self) -> int:
        found = self.stands_for
        if found is None:
            return super().__len__()
        return _engine.box_count(found.plan) if found.numbers is None else _engine.kept_count(found.numbers)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __radd__(self, other: Iterable[Any]) -> list[Any]:
        return [*other, *self]

    def _touch(self) -> None:
        with touching:
            if self.stands_for is not None:
                made = torch_native.items_decode(*self.stands_for)
                list.extend(self, made)
                self.stands_for = None
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
    for name, tensor in torch_native.items_stored(merged):
        if tensor is None:
            found[name] = BytesStorageMetadata()
        else:
            size, properties, chunks = tensor
            found[name] = TensorStorageMetadata(properties=properties, size=size, chunks=chunks)
    return found
