# SPDX-License-Identifier: Apache-2.0
"""The planning engine as the torch planners see it: columns in, plan buffers out. Pure functions."""
from __future__ import annotations

import hashlib
import pickle
import struct
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

from ._errors import PlanConflictError


class Columns(NamedTuple):
    """Entries in flat arrays, each a bytes object: offsets, ranges, numbers and order of u64, dtypes of i32, extents of
    i64. Boxes are numbered through all entries. The order of the fields is that of the native codec."""

    length: int
    names: bytes
    name_offsets: bytes
    dtypes: bytes
    shapes: bytes
    shape_offsets: bytes
    box_ranges: bytes
    box_offsets: bytes
    box_sizes: bytes
    attributes: bytes
    attribute_offsets: bytes
    numbers: bytes | None = None
    order: bytes | None = None


def u64(data: bytes) -> list[int]:
    """Values of an array of u64."""
    return memoryview(data).cast("Q").tolist()


def _i64(data: bytes) -> list[int]:
    return memoryview(data).cast("q").tolist()


def describe(columns: Columns) -> bytes:
    """Plan buffer of what one rank holds."""
    return pickle.dumps(tuple(columns))


def entries(plan: bytes) -> Columns:
    """What a plan buffer describes; of a kept plan with the final numbers of its boxes."""
    return Columns(*pickle.loads(plan))


def digest(plan: bytes) -> bytes:
    """16 bytes that are equal for equal descriptions."""
    return hashlib.blake2b(plan, digest_size=16).digest()


def _rows(plan: bytes) -> list[tuple[Any, ...]]:
    """(name, dtype, shape, attributes, [(offsets, sizes)]) of every entry."""
    c = entries(plan)
    names, shapes, attributes = u64(c.name_offsets), u64(c.shape_offsets), u64(c.attribute_offsets)
    ranges, dtypes = u64(c.box_ranges), memoryview(c.dtypes).cast("i").tolist()
    extents, starts, sizes = _i64(c.shapes), _i64(c.box_offsets), _i64(c.box_sizes)
    found, at = [], 0
    for i in range(c.length):
        shape = tuple(extents[shapes[i]:shapes[i + 1]])
        boxes = []
        for _ in range(ranges[i + 1] - ranges[i]):
            boxes.append((tuple(starts[at:at + len(shape)]), tuple(sizes[at:at + len(shape)])))
            at += len(shape)
        found.append((c.names[names[i]:names[i + 1]], dtypes[i], shape, c.attributes[attributes[i]:attributes[i + 1]],
                      boxes))
    return found


def _packed(kind: str, values: Sequence[int]) -> bytes:
    return struct.pack(f"={len(values)}{kind}", *values)


def _plan_of(rows: Sequence[tuple[Any, ...]], numbers: Sequence[int]) -> bytes:
    def cuts(sizes: Sequence[int]) -> bytes:
        total, out = 0, [0]
        for size in sizes:
            total += size
            out.append(total)
        return _packed("Q", out)

    return pickle.dumps((
        len(rows), b"".join(r[0] for r in rows), cuts([len(r[0]) for r in rows]), _packed("i", [r[1] for r in rows]),
        _packed("q", [v for r in rows for v in r[2]]), cuts([len(r[2]) for r in rows]), cuts([len(r[4]) for r in rows]),
        _packed("q", [v for r in rows for box in r[4] for v in box[0]]),
        _packed("q", [v for r in rows for box in r[4] for v in box[1]]),
        b"".join(r[3] for r in rows), cuts([len(r[3]) for r in rows]), _packed("Q", numbers), None))


def merge(plans: Sequence[bytes], owner: str, cover: str) -> tuple[bytes, list[bytes]]:
    """Merged plan and the kept plan of every rank. PlanConflictError where ranks describe one name differently."""
    ranks = [_rows(plan) for plan in plans]
    holders: dict[tuple[Any, ...], set[int]] = {}
    first: dict[bytes, tuple[int, tuple[Any, ...]]] = {}
    for rank, rows in enumerate(ranks):
        for row in rows:
            other, known = first.setdefault(row[0], (rank, row))
            if known[1:3] != row[1:3]:
                raise PlanConflictError(f"tensor '{row[0].decode()}' has another dtype or shape on rank {other} than on "
                                        f"rank {rank}")
            for box in row[4]:
                holders.setdefault((row[0], box[0]), set()).add(rank)
    load = [0] * len(plans)
    owners: dict[tuple[Any, ...], int] = {}
    for key, held_by in holders.items():
        chosen = min(held_by) if owner == "lowest_rank" else min(held_by, key=load.__getitem__)
        row = first[key[0]][1]
        weight = (row[1] >> 8) // 8 if row[1] else 0
        for extent in row[2]:
            weight *= extent
        load[chosen] += weight or 1
        owners[key] = chosen
    merged: dict[bytes, tuple[Any, ...]] = {}
    kept = []
    for rank, rows in enumerate(ranks):
        mine, numbers = [], list[int]()
        for row in rows:
            boxes = [box for box in row[4] if owners[(row[0], box[0])] == rank]
            if not boxes:
                continue
            mine.append((*row[:4], boxes))
            stored = merged.setdefault(row[0], (*first[row[0]][1][:4], []))
            numbers += range(len(stored[4]), len(stored[4]) + len(boxes))
            stored[4].extend(boxes)
        kept.append(_plan_of(mine, numbers))
    for row in merged.values():
        _prove(row, cover)
    return _plan_of(list(merged.values()), [0] * sum(len(row[4]) for row in merged.values())), kept


def _prove(row: tuple[Any, ...], cover: str) -> None:
    cells: set[tuple[int, ...]] = set()
    volume = 0
    for offset, size in row[4]:
        box = list(product(*(range(o, o + s) for o, s in zip(offset, size, strict=True))))
        volume += len(box)
        cells.update(box)
    whole = 1
    for extent in row[2]:
        whole *= extent
    if row[1] and row[2] and (len(cells) != volume or (cover == "full" and volume != whole)):
        raise PlanConflictError(f"the chunks of '{row[0].decode()}' do not cover it once")


def box_count(plan: bytes) -> int:
    """Number of items of a plan."""
    c = entries(plan)
    return int(memoryview(c.box_ranges).cast("Q")[c.length])


def starts(offsets: bytes) -> list[tuple[int, int]]:
    """Neighbouring pairs of an array of offsets."""
    return list(pairwise(u64(offsets)))
