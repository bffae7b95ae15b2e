# SPDX-License-Identifier: Apache-2.0
"""The planning engine as the torch planners see it: columns in, plan buffers out. Pure functions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .... import planning
from ...._library import native

_SHARDED = (2).to_bytes(4, "little")
_AUTO = bytes(4)
_LOCAL_PLAN = 1


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


_FIELDS = ("count", *Columns._fields[1:])


Plan = Any  # a plan buffer: bytes, or a memoryview of the block in which a merge made it


def describe(columns: Columns) -> bytes:
    """Plan buffer of what one rank holds."""
    # Tensors are "sharded" one and all: that one rank's box is the whole tensor is no difference between ranks here.
    kinds = _SHARDED * columns.length
    if _AUTO in columns.dtypes:  # four zero bytes: some entry is a byte object
        dtypes = memoryview(columns.dtypes).cast("i").tolist()
        kinds = b"".join([_SHARDED if dtype else _AUTO for dtype in dtypes])
    fields: dict[str, Any] = dict(zip(_FIELDS, columns, strict=True))
    return planning.describe(planning.EntryBatch(**fields, kinds=kinds))


def entries(plan: Plan) -> Columns:
    """What a plan buffer describes; of a merged plan with the numbers of its chunks."""
    handle = native.shw_plan_create(plan)
    found = native.shw_plan_entries(handle)
    columns = Columns(*[getattr(found, name) for name in _FIELDS])
    if native.shw_plan_kind(handle) == _LOCAL_PLAN:  # numbers of pieces, which torch has no place for
        columns = columns._replace(numbers=None)
    if columns.attribute_offsets is None:  # no entry has any: there are byte objects only
        columns = columns._replace(attributes=b"", attribute_offsets=bytes(8 * (columns.length + 1)))
    return columns


def digest(plan: Plan) -> bytes:
    """16 bytes that are equal for equal descriptions."""
    return planning.digest(plan)


def merge(plans: Sequence[Plan], owner: str, cover: str) -> tuple[Plan, list[memoryview]]:
    """The merged plan, and for each rank the numbers of what it keeps of its own plan (planning.Merged), as memoryviews.
    Raises what the engine finds wrong in the plans together."""
    merged = planning.merge_views(list(plans), owner=owner, preset="torch", cover=cover, verify_replicas="off")
    return merged.plan, merged.kept


def kept_count(numbers: bytes) -> int:
    """Number of items that a rank keeps."""
    return sum(number != planning.NOT_KEPT for number in memoryview(numbers).cast("I"))


def box_count(plan: Plan) -> int:
    """Number of items of a plan."""
    found = entries(plan)
    return int(memoryview(found.box_ranges).cast("Q")[found.length])
