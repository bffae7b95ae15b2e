# SPDX-License-Identifier: Apache-2.0
"""Proof that the chunks of a checkpoint fill what is wanted, each element once; of chunks with equal boxes one counts.

Where the parts of a box share no element, equal volumes are the proof, and parts that follow each other in one dimension,
or in the order of a grid, share none. Other parts are given to the engine, and those that it cannot hold are compared in
pairs. Pure functions.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from torch.distributed.checkpoint.metadata import ChunkStorageMetadata
from torch.distributed.checkpoint.planner import ReadItem

from ....errors import ShardwrightError
from ..._library import native as torch_native
from . import _boxes
from ._errors import UnfilledError
from ._values import whole_chunk

# Name, shape, stored chunks, wanted boxes (None = all of it); of a byte object all but the name are None.
Row = tuple[str, Any, Any, Any]


def wanted_boxes(row: Row) -> Sequence[Any]:
    """The wanted boxes of a tensor's row."""
    _, size, _, wanted = row
    return [whole_chunk(size)] if wanted is None else wanted


def _box_text(fqn: str, box: Any) -> str:
    return f"{fqn} at offsets {tuple(box.offsets)}, sizes {tuple(box.sizes)}"


def unfilled(fqn: str, box: Any, volume: int) -> UnfilledError:
    """The error for a wanted box of which the checkpoint holds `volume` elements."""
    return UnfilledError(f"the checkpoint holds {volume} of the {math.prod(box.sizes)} elements of {_box_text(fqn, box)}",
                         {"tensor": fqn})


def _follow_each_other(parts: Sequence[ReadItem]) -> bool:
    """True for parts of which each begins where the one before it has ended, or later, all in the same dimension."""
    return len(parts) < 2 or any(
        all(part.dest_offsets[dim] >= before.dest_offsets[dim] + before.lengths[dim]
            for before, part in itertools.pairwise(parts)) for dim in range(len(parts[0].lengths)))


def _parts_of_boxes(row: Row, items: Sequence[ReadItem]) -> list[list[ReadItem]]:
    """The reads of each wanted box. UnfilledError where their volumes are less than that of the box."""
    wanted = wanted_boxes(row)
    parts: list[list[ReadItem]] = [[] for _ in wanted]
    for item in items:
        parts[item.dest_index.index or 0].append(item)
    for box, mine in zip(wanted, parts, strict=True):
        volume = sum(math.prod(part.lengths) for part in mine)
        if volume < math.prod(box.sizes):
            raise unfilled(row[0], box, volume)
    return parts


def check_filled(row: Row, items: Sequence[ReadItem]) -> None:
    """UnfilledError where the reads of a tensor do not fill its wanted boxes, each element once."""
    if not all(map(_follow_each_other, _parts_of_boxes(row, items))):
        check_doubtful([row])


def check_doubtful(rows: list[Row]) -> None:
    """The same for tensors whose chunks may share elements, whatever their volumes."""
    try:
        if not rows or torch_native.reads_prove(rows):
            return
    except ShardwrightError as e:
        if "cover" in e.details:
            raise UnfilledError(f"the checkpoint does not hold each element that is wanted once: {e}", e.details) from e
    for row in rows:
        _check_pairs(row)


def _check_pairs(row: Row) -> None:
    fqn, _, saved, _ = row
    distinct = list({(tuple(chunk.offsets), tuple(chunk.sizes)): chunk for chunk in saved}.values())
    items = _boxes.reads_by_pairs(fqn, distinct, wanted_boxes(row))
    for box, mine in zip(wanted_boxes(row), _parts_of_boxes(row, items), strict=True):
        parts = [ChunkStorageMetadata(part.dest_offsets, part.lengths) for part in mine if math.prod(part.lengths)]
        if any(i != j for i, j in _boxes.overlapping_pairs(parts, parts)):
            raise UnfilledError(f"the checkpoint holds elements of {_box_text(fqn, box)} in several chunks", {"tensor": fqn})
