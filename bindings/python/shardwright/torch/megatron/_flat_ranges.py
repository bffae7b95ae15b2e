# SPDX-License-Identifier: Apache-2.0
"""Geometry of flattened ranges: slices of the row-major elements of a shard, as Megatron up to 0.14 stored them.

All arithmetic is on integers. On disk such a tensor is an entry of one dimension more: the grid of shards, then the
elements of one shard; `nd_entry` gives that form.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

Extents = tuple[int, ...]


class FlatBox(NamedTuple):
    """A box of a shard whose elements lie together in the flattened shard."""

    offsets: Extents
    sizes: Extents
    start: int  # of its first element, counted from the begin of the range


class NdEntry(NamedTuple):
    """A flattened shard in the form on disk."""

    size: Extents
    offsets: Extents
    sizes: Extents


class Run(NamedTuple):
    """Elements that lie together both in a stored shard and in a wanted one."""

    stored: int  # first element in the flattened stored shard
    wanted: int  # first element in the data of the wanted shard
    length: int


def row_major_boxes(shape: Sequence[int], start: int, stop: int) -> list[FlatBox]:
    """The elements start to stop of a row-major array as at most 2 * ndim - 1 boxes, in order of their elements."""
    boxes: list[FlatBox] = []
    _append_boxes((), tuple(shape), start, stop, start, boxes)
    return boxes


def _append_boxes(prefix: Extents, shape: Extents, start: int, stop: int, origin: int, boxes: list[FlatBox]) -> None:
    """`start` and `stop` count inside the sub-array at `prefix`, `origin` is where the range begins on that scale."""
    if start >= stop:
        return
    ones = (1,) * len(prefix)
    if not shape:
        boxes.append(FlatBox(prefix, ones, start - origin))
        return
    row = math.prod(shape[1:])
    first, last = -(-start // row), stop // row  # whole rows
    if first > last:
        _append_boxes((*prefix, last), shape[1:], start - last * row, stop - last * row, origin - last * row, boxes)
        return
    if start < first * row:
        begin = (first - 1) * row
        _append_boxes((*prefix, first - 1), shape[1:], start - begin, row, origin - begin, boxes)
    if first < last:
        zeros = (0,) * (len(shape) - 1)
        boxes.append(FlatBox((*prefix, first, *zeros), (*ones, last - first, *shape[1:]), first * row - origin))
    begin = last * row
    _append_boxes((*prefix, last), shape[1:], 0, stop - begin, origin - begin, boxes)


def nd_entry(fragments: Sequence[int], position: Sequence[int], local_shape: Sequence[int], flat: slice) -> NdEntry:
    """The form on disk of elements `flat` of the shard at `position` of a grid of `fragments` shards.

    `fragments` and `position` have the prepended axes, where a shard has one element.
    """
    count = math.prod(local_shape)
    return NdEntry((*fragments, count), (*position, flat.start), (*(1 for _ in fragments), flat.stop - flat.start))


def overlapping_fragments(stored: int, wanted: int, position: int) -> range:
    """Positions of `stored` equal fragments of an axis that meet fragment `position` of `wanted` equal fragments."""
    return range(stored * position // wanted, -(-stored * (position + 1) // wanted))


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
