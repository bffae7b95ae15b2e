# SPDX-License-Identifier: Apache-2.0
"""Boxes of torch's metadata: overlap, bounds, intersections and the findings about a whole plan.

Reads come from the engine (planning.match in the order of torch's sweep). What it cannot hold, and findings about chunks,
come from pairs that overlap: these are found by a sweep along the dimension with the most distinct begins, so that no
layout is quadratic, and are then put into the order in which torch 2.15 lists them. Pure functions.
"""
from __future__ import annotations

import logging
import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import LoadItemType, ReadItem, SavePlan

from ..._library import native as torch_native
from . import _items  # noqa: F401  # tells the native side torch's classes

logger = logging.getLogger(__name__)
Pair = tuple[int, int]
ENGINE_BOXES_MIN = 8  # with fewer boxes on both sides the way to the engine costs more than what it saves


def check_box_overlap(box0: ChunkStorageMetadata, box1: ChunkStorageMetadata) -> bool:
    """True where neither box ends before the other begins in any dimension. An empty box strictly inside another
    counts, as in torch; boxes without dimensions always do."""
    return all(a < b + size_b and b < a + size_a for a, size_a, b, size_b
               in zip(box0.offsets, box0.sizes, box1.offsets, box1.sizes, strict=False))


def check_box_bounds(outer_box_size: Sequence[int], inner_box: ChunkStorageMetadata) -> bool:
    """True for a box that lies inside a tensor of the given shape."""
    return all(offset >= 0 and size >= 0 and offset + size <= extent for extent, offset, size
               in zip(outer_box_size, inner_box.offsets, inner_box.sizes, strict=False))


def _sweep_dim(boxes: Sequence[ChunkStorageMetadata]) -> int:
    """The dimension that tells the boxes apart best: the one with the most distinct begins, the first on ties."""
    ndim = len(boxes[0].offsets)
    return max(range(ndim), key=lambda dim: len({box.offsets[dim] for box in boxes}))


def overlapping_pairs(first: Sequence[ChunkStorageMetadata], second: Sequence[ChunkStorageMetadata]) -> list[Pair]:
    """Numbers (in `first`, in `second`) of all boxes that overlap, in no particular order."""
    if not first or not second:
        return []
    if not first[0].offsets:
        return [(i, j) for i in range(len(first)) for j in range(len(second))]
    dim = _sweep_dim(second if len(second) >= len(first) else first)
    # An event is (begin, side, number); the open boxes of each side are kept by their end.
    events = sorted([(box.offsets[dim], 0, i) for i, box in enumerate(first)]
                    + [(box.offsets[dim], 1, j) for j, box in enumerate(second)])
    sides, found = (first, second), []
    opened: tuple[list[Pair], list[Pair]] = ([], [])
    for begin, side, number in events:
        for one in opened:
            del one[:bisect_left(one, (begin, -1))]
        box = sides[side][number]
        for _, other in opened[1 - side]:
            if check_box_overlap(box, sides[1 - side][other]):
                found.append((other, number) if side else (number, other))
        insort(opened[side], (begin + box.sizes[dim], number))
    return found


# ---- findings about a plan ----

def _pairs_within(chunks: Sequence[ChunkStorageMetadata], shape: Sequence[int]) -> list[Pair]:
    """Pairs of chunks that share an element, each and all in torch's order: later chunk of its sweep first."""
    solid = [number for number, chunk in enumerate(chunks) if all(size > 0 for size in chunk.sizes)]
    boxes = [chunks[number] for number in solid]
    dim = max(range(len(shape)), key=lambda d: shape[d])
    order = sorted(solid, key=lambda n: (chunks[n].offsets[dim], *chunks[n].offsets))
    position = {number: place for place, number in enumerate(order)}
    pairs = {tuple(sorted((solid[i], solid[j]), key=position.__getitem__))
             for i, j in overlapping_pairs(boxes, boxes) if i != j} if len(boxes) > 1 else set()
    return sorted(((later, earlier) for earlier, later in pairs),
                  key=lambda p: (position[p[0]], chunks[p[1]].offsets[dim] + chunks[p[1]].sizes[dim], p[1]))


def _findings(key: str, size: Sequence[int], chunks: Sequence[ChunkStorageMetadata], check_fill: bool) -> list[str]:
    found = [f"key:{key} has out of bounds chunk: tensor-size:{size} chunk: {chunk}"
             for chunk in chunks if not check_box_bounds(size, chunk)]
    found += [f"key:{key} has overlapping chunks: {chunks[a]} {chunks[b]}" for a, b in _pairs_within(chunks, size)]
    volume, filled = math.prod(size), sum(math.prod(chunk.sizes) for chunk in chunks)
    if check_fill and volume != filled:
        found.append(f"key:{key} invalid fill tensor-volume: {volume} chunks-volume: {filled}")
    return found


def validate_global_plan(global_plan: list[SavePlan], metadata: Metadata) -> list[str]:
    """All findings about the chunks of a metadata, as sentences in torch's words; each is logged.

    Byte objects and tensors without dimensions are not looked at. The volumes are compared only where there is more
    than one plan. Empty chunks overlap nothing.
    """
    found = [finding for key, value in metadata.state_dict_metadata.items()
             if not isinstance(value, BytesStorageMetadata) and len(value.size)
             for finding in _findings(key, value.size, value.chunks, len(global_plan) > 1)]
    for finding in found:
        logger.warning(finding)
    return found


# ---- reads ----

def _read_item(fqn: str, wanted: Any, number: int, saved: Any, stored: int) -> ReadItem:
    rows = list(zip(wanted.offsets, wanted.sizes, saved.offsets, saved.sizes, strict=True))
    return ReadItem(
        type=LoadItemType.TENSOR,
        dest_index=MetadataIndex(fqn, wanted.offsets, number),
        dest_offsets=torch.Size([max(0, b - a) for a, _, b, _ in rows]),
        storage_index=MetadataIndex(fqn, saved.offsets, stored),
        storage_offsets=torch.Size([max(0, a - b) for a, _, b, _ in rows]),
        lengths=torch.Size([min(a + size_a, b + size_b) - max(a, b) for a, size_a, b, size_b in rows]))


def _reach_dim(boxes: Sequence[ChunkStorageMetadata]) -> int:
    """The dimension in which the boxes reach farthest, the first on ties."""
    return max(range(len(boxes[0].offsets)), key=lambda dim: max(box.offsets[dim] + box.sizes[dim] for box in boxes),
               default=0)


def reads_by_pairs(fqn: str, saved: Sequence[Any], wanted: Sequence[Any]) -> list[ReadItem]:
    """create_read_items_for_chunk_list without the engine."""
    pairs = overlapping_pairs(wanted, saved)
    if pairs and wanted[0].offsets and len(pairs) > 1:
        dim = _reach_dim([*wanted, *saved])
        pairs.sort(key=lambda p: (wanted[p[0]].offsets[dim], p[0],
                                  saved[p[1]].offsets[dim] + saved[p[1]].sizes[dim], p[1]))
    return [_read_item(fqn, wanted[i], i, saved[j], j) for i, j in pairs]


def create_read_items_for_chunk_list(fqn: str, checkpoint_md: Any, local_chunks: list[ChunkStorageMetadata]
                                     ) -> list[ReadItem]:
    """The reads that fill wanted boxes from the chunks of one stored tensor.

    Args:
        fqn: name in the indexes of the items.
        checkpoint_md: TensorStorageMetadata of the stored tensor.
        local_chunks: wanted boxes; their position in the list becomes the hint of dest_index.
    Returns items in the order of torch 2.15: wanted boxes by their begin in the dimension that reaches farthest, for
    each the chunks by their end there, then by number.
    """
    saved = checkpoint_md.chunks
    if not local_chunks or not saved:
        return []
    if len(saved) + len(local_chunks) >= ENGINE_BOXES_MIN:
        found = torch_native.reads_plan([(fqn, checkpoint_md.size, saved, local_chunks)])
        if found is not None:
            return torch_native.reads_decode(found[:3])
    return reads_by_pairs(fqn, saved, local_chunks)
