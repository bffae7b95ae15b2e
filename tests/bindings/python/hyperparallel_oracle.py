# SPDX-License-Identifier: Apache-2.0
"""The rules of the standard preset, written down as plainly as they can be: lists, dicts and nested loops, quadratic
where that is simplest. The engine is compared with it on random worlds.
"""
import itertools
import math
from typing import NamedTuple


class Conflict(ValueError):
    """Plans that do not fit together."""


class Piece(NamedTuple):
    """One item of a rank: `dtype_bits` 0 = an object, whose offsets and sizes are empty."""

    name: str
    dtype_bits: int
    shape: tuple
    offsets: tuple
    sizes: tuple


def intersection(a, b):
    """Common part of two boxes (offsets, sizes) as (begin, sizes), None when it is empty."""
    begins = tuple(max(x, y) for x, y in zip(a[0], b[0], strict=True))
    ends = tuple(min(x + n, y + m) for x, n, y, m in zip(a[0], a[1], b[0], b[1], strict=True))
    sizes = tuple(e - b for b, e in zip(begins, ends, strict=True))
    return None if any(size <= 0 for size in sizes) else (begins, sizes)


def weight(piece):
    """Bytes that a piece counts in the choice of its writer."""
    return (math.prod(piece.sizes) * piece.dtype_bits + 7) // 8 or 1 if piece.dtype_bits else 1


def owners(plans, lowest_rank):
    """{(name, offsets): rank that writes}. Plans are lists of pieces."""
    holders, pieces = {}, {}
    for rank, plan in enumerate(plans):
        for piece in plan:
            key = (piece.name, piece.offsets)
            if rank in holders.setdefault(key, []):
                raise Conflict(f"{key} twice in the plan of rank {rank}")
            known = pieces.setdefault(key, piece)
            if known != piece:
                raise Conflict(f"{key}: {known} and {piece}")
            holders[key].append(rank)
    load = [0] * len(plans)
    for key, ranks in holders.items():
        if len(ranks) == 1:
            load[ranks[0]] += weight(pieces[key])
    chosen = {}
    for key, ranks in holders.items():
        if len(ranks) > 1:
            chosen[key] = ranks[0] if lowest_rank else min(ranks, key=lambda rank: (load[rank], rank))
            load[chosen[key]] += weight(pieces[key])
        else:
            chosen[key] = ranks[0]
    return chosen


def without_redundancy(plans, lowest_rank):
    """Plans of all ranks without what another rank writes."""
    chosen = owners(plans, lowest_rank)
    return [[piece for piece in plan if chosen[piece.name, piece.offsets] == rank] for rank, plan in enumerate(plans)]


def numbered(plans):
    """Number of each surviving piece, in the shape of the plans (None for objects); {name: chunks}, objects first."""
    chunks, objects = {}, {}
    numbers = []
    for plan in plans:
        row = []
        for piece in plan:
            if piece.dtype_bits:
                row.append(len(chunks.setdefault(piece.name, [])))
                chunks[piece.name].append((piece.offsets, piece.sizes))
            else:
                row.append(None)
                objects[piece.name] = None
        numbers.append(row)
    return numbers, objects | chunks


def reads(saved, wanted):
    """(wanted number, saved number, begin in wanted, begin in saved, sizes) of all intersections of boxes."""
    found = []
    for (l, local), (s, chunk) in itertools.product(enumerate(wanted), enumerate(saved)):
        common = intersection(local, chunk)
        if common is not None:
            begins, sizes = common
            found.append((l, s, tuple(b - o for b, o in zip(begins, local[0], strict=True)),
                          tuple(b - o for b, o in zip(begins, chunk[0], strict=True)), sizes))
    return found
