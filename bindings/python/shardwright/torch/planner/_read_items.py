# SPDX-License-Identifier: Apache-2.0
"""The list of a LoadPlan: torch's ReadItems here, flat arrays on the way between processes, items again when the other
side looks at them."""
from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterable
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import MetadataIndex
from torch.distributed.checkpoint.planner import LoadItemType, ReadItem

from ._lazy import Fillable, touches_first, touching

_NONE = -1
_KINDS = (LoadItemType.TENSOR, LoadItemType.BYTE_IO)


def _put_index(index: Any, names: dict[str, int], values: array[int]) -> bool:
    """Name, hint, number of offsets and offsets of an index; False where arrays cannot hold it."""
    offset, hint = index.offset, index.index
    if type(index) is not MetadataIndex or type(index.fqn) is not str or (hint is not None and hint < 0):
        return False
    values.extend((names.setdefault(index.fqn, len(names)), _NONE if hint is None else hint,
                   _NONE if offset is None else len(offset)))
    values.extend(() if offset is None else offset)
    return True


def packed(items: Iterable[Any]) -> bytes | None:
    """A list of ReadItems as bytes; None where it holds what arrays cannot."""
    names: dict[str, int] = {}
    values = array("q")
    count = 0
    for item in items:
        if type(item) is not ReadItem or item.type not in _KINDS:
            return None
        count += 1
        values.append(_KINDS.index(item.type))
        if not (_put_index(item.dest_index, names, values) and _put_index(item.storage_index, names, values)):
            return None
        if not len(item.dest_offsets) == len(item.storage_offsets) == len(item.lengths):
            return None
        values.append(len(item.lengths))
        for part in (item.dest_offsets, item.storage_offsets, item.lengths):
            values.extend(part)
    return pickle.dumps((list(names), count, values.tobytes()))


class _Reader:
    """Takes values from the front of an array."""

    def __init__(self, names: list[str], values: array[int]) -> None:
        self.names, self.values, self.at = names, values, 0

    def number(self) -> int:
        self.at += 1
        return self.values[self.at - 1]

    def size(self, count: int) -> torch.Size:
        self.at += count
        return torch.Size(self.values[self.at - count:self.at].tolist())

    def index(self) -> MetadataIndex:
        name, hint, count = self.names[self.number()], self.number(), self.number()
        return MetadataIndex(name, None if count == _NONE else self.size(count), None if hint == _NONE else hint)

    def item(self) -> ReadItem:
        kind, dest, stored = _KINDS[self.number()], self.index(), self.index()
        count = self.number()
        offsets = self.size(count)
        return ReadItem(type=kind, dest_index=dest, dest_offsets=offsets, storage_index=stored,
                        storage_offsets=self.size(count), lengths=self.size(count))


def unpacked(data: bytes) -> list[ReadItem]:
    """The items that `packed` was given."""
    names, count, text = pickle.loads(data)
    values = array("q")
    values.frombytes(text)
    reader = _Reader(names, values)
    return [reader.item() for _ in range(count)]


class FilledReads(list[Any], Fillable):
    """A list of ReadItems that is pickled as flat arrays."""

    __slots__ = ("data",)
    data: bytes | None

    def __reduce_ex__(self, protocol: Any) -> Any:
        data = packed(self)
        return (PackedReads, (data,)) if data is not None else (list, (), None, iter(self))


@touches_first(list)
class PackedReads(FilledReads):
    """A list of ReadItems that came from another process and that nobody has looked into."""

    __slots__ = ()

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.data = data

    def __radd__(self, other: Iterable[Any]) -> list[Any]:
        return [*other, *self]

    def __reduce_ex__(self, protocol: Any) -> Any:
        data = self.data
        return (PackedReads, (data,)) if data is not None else super().__reduce_ex__(protocol)

    def _touch(self) -> None:
        with touching:
            if self.data is not None:
                list.extend(self, unpacked(self.data))
                self.data = None
                self.__class__ = FilledReads  # type: ignore[assignment]  # equal layout
