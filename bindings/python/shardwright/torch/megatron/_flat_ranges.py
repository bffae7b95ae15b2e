# SPDX-License-Identifier: Apache-2.0
"""Flattened ranges: slices of the row-major elements of a shard. Boxes come from the library's layouts; runs are what a
stored and a wanted shard have in a row. All arithmetic is on integers.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...layout import GridShard


class FlatBox(NamedTuple):
    """A box of an array whose elements lie together in the flattened array."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    start: int  # of its first element, counted from the begin of the range


class Run(NamedTuple):
    """Elements that lie together both in a stored shard and in a wanted one."""

    stored: int  # first element in the flattened stored shard
    wanted: int  # first element in the data of the wanted shard
    length: int


def row_major_boxes(shape: Sequence[int], start: int, stop: int) -> list[FlatBox]:
    """The elements start to stop of a row-major array as at most 2 * ndim - 1 boxes, in order of their elements."""
    if start == stop:
        return []
    extents = tuple(shape)
    pieces = GridShard(extents, extents, (0,) * len(extents), flat_range=(start, stop)).pieces()
    return sorted((FlatBox(*piece) for piece in pieces), key=lambda box: box.start)


def runs_of_overlap(stored_offset: Sequence[int], stored_shape: Sequence[int], wanted_offset: Sequence[int],
                    wanted_shape: Sequence[int], wanted_range: slice | None = None) -> Iterator[Run]:
    """Runs of the elements that a stored and a wanted box of one tensor share, in row-major order.

    `wanted_range`: only these elements of the flattened wanted box are held; Run.wanted counts from its start.
    """
    begin = [max(s, w) for s, w in zip(stored_offset, wanted_offset, strict=True)]
    end = [min(s + n, w + m)
           for s, n, w, m in zip(stored_offset, stored_shape, wanted_offset, wanted_shape, strict=True)]
    size = [e - b for b, e in zip(begin, end, strict=True)]
    if any(extent <= 0 for extent in size):
        return
    inner = len(size)  # axes from here on are whole in both boxes, so runs go across them
    while inner > 0 and size[inner - 1] == stored_shape[inner - 1] == wanted_shape[inner - 1]:
        inner -= 1
    outer = max(inner - 1, 0)
    length = math.prod(size[outer:])
    kept = slice(0, math.prod(wanted_shape)) if wanted_range is None else wanted_range
    for index in itertools.product(*(range(extent) for extent in size[:outer])):
        place = [b + i for b, i in zip(begin, (*index, *(0 for _ in size[outer:])), strict=True)]
        stored = _flat_index(place, stored_offset, stored_shape)
        wanted = _flat_index(place, wanted_offset, wanted_shape)
        first, last = max(wanted, kept.start), min(wanted + length, kept.stop)
        if first < last:
            yield Run(stored + first - wanted, first - kept.start, last - first)


def _flat_index(place: Sequence[int], offset: Sequence[int], shape: Sequence[int]) -> int:
    found = 0
    for at, begin, extent in zip(place, offset, shape, strict=True):
        found = found * extent + at - begin
    return found
