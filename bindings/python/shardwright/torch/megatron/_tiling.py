# SPDX-License-Identifier: Apache-2.0
"""Whether boxes of different ranks make a whole tensor, each element once.

The engine proves it, in time linear in the boxes. Only a set that is not whole is swept for the ranks to name.
"""
from __future__ import annotations

import heapq
import itertools
import math
from array import array
from collections.abc import Sequence

from ... import planning
from ...errors import InvalidArgumentError
from ...tensor import dtype_number

RankedBox = tuple[int, tuple[int, ...], tuple[int, ...]]


def tiling_problem(shape: Sequence[int], boxes: Sequence[RankedBox]) -> str | None:
    """None when the boxes (rank, offset, sizes) lie inside `shape` and cover it exactly once, else what is wrong.

    Boxes without elements count for nothing.
    """
    filled = [box for box in boxes if 0 not in box[2]]
    if _is_whole(shape, filled):
        return None
    found = _overlap_of(len(shape), filled)
    if found is not None:
        (rank, offset, _), (other_rank, other_offset, _) = found
        return f"the shards of rank {rank} at {offset} and of rank {other_rank} at {other_offset} overlap"
    covered = sum(math.prod(sizes) for _, _, sizes in filled)
    return f"the main replicas have {covered} of {math.prod(shape)} elements"


def _is_whole(shape: Sequence[int], filled: Sequence[RankedBox]) -> bool:
    if not filled or 0 in shape:
        return not filled and 0 in shape
    flat = itertools.chain.from_iterable
    batch = planning.EntryBatch(
        count=1, names=b"t", name_offsets=array("Q", [0, 1]), dtypes=array("i", [dtype_number("uint8")]),
        kinds=array("i", [2]), shapes=array("q", shape), shape_offsets=array("Q", [0, len(shape)]),
        box_ranges=array("Q", [0, len(filled)]), box_offsets=array("q", flat(offset for _, offset, _ in filled)),
        box_sizes=array("q", flat(sizes for _, _, sizes in filled)))
    try:
        planning.merge([planning.describe(batch)], owner="exact", preset="megatron", cover="full")
    except InvalidArgumentError:
        return False
    return True


def _overlap_of(ndim: int, filled: Sequence[RankedBox]) -> tuple[RankedBox, RankedBox] | None:
    """Two boxes that share an element, found along the axis with most distinct offsets."""
    if ndim == 0:
        return (filled[0], filled[1]) if len(filled) > 1 else None
    axis = max(range(ndim), key=lambda a: len({offset[a] for _, offset, _ in filled}))
    ordered = sorted(filled, key=lambda box: box[1][axis])
    active: list[tuple[int, int]] = []  # end along the axis, number of the box
    for number, box in enumerate(ordered):
        while active and active[0][0] <= box[1][axis]:
            heapq.heappop(active)
        for _, other in active:
            if _overlap(ordered[other], box):
                return ordered[other], box
        heapq.heappush(active, (box[1][axis] + box[2][axis], number))
    return None


def _overlap(one: RankedBox, other: RankedBox) -> bool:
    return all(a < b + m and b < a + n for a, n, b, m in zip(one[1], one[2], other[1], other[2], strict=True))
