# SPDX-License-Identifier: Apache-2.0
"""The list of a LoadPlan: flat arrays until somebody looks into it, torch's ReadItems from then on.

Arrays are blocks of (names, number of reads, values); the values are described in native/columns_reads.h.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._library import native as torch_native
from . import _items  # noqa: F401  # tells the native side torch's classes
from ._lazy import Fillable, touches_first, touching

Block = tuple[list[str], int, bytes]


def packed(items: list[Any]) -> tuple[Block, ...] | None:
    """A list of ReadItems as arrays; None where it holds what arrays cannot."""
    block = torch_native.reads_encode(items)
    return None if block is None else (block,)


def unpacked(data: Iterable[Block]) -> list[Any]:
    """The items of arrays."""
    return [item for block in data for item in torch_native.reads_decode(block)]


class FilledReads(list[Any], Fillable):
    """A list of ReadItems that is pickled as flat arrays (`data`, None while they are items)."""

    __slots__ = ("data",)
    data: tuple[Block, ...] | None

    def __reduce_ex__(self, protocol: Any) -> Any:
        data = packed(self)
        return (PackedReads, (data,)) if data is not None else (list, (), None, iter(self))


@touches_first(list)
class PackedReads(FilledReads):
    """A list of ReadItems that are arrays, because nobody has looked into it."""

    __slots__ = ()

    def __init__(self, data: Iterable[Block]) -> None:
        super().__init__()
        self.data = tuple(data)

    def __len__(self) -> int:
        data = self.data
        return super().__len__() if data is None else sum(count for _, count, _ in data)

    def __bool__(self) -> bool:
        return len(self) > 0

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
