# SPDX-License-Identifier: Apache-2.0
"""The engine behind the standard planners: columns in and out of shardwright.planning, with the rules of the standard
preset.

Nothing but plan buffers is kept between calls, and all heavy work is done without the GIL.
"""
from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from .. import planning
from .._options import KINDS
from ..errors import OutOfRangeError
from .columns import OBJECT, Columns, Matches
from .faults import OutsideTensorError

_PRESET = "hyperparallel"
# Whether a box is the whole tensor or a part shows in the box; one kind for both lets ranks differ in that.
_SHARDED, _AUTO = KINDS["sharded"], KINDS["auto"]
_UNKNOWN = 0  # world size: a planner is told its rank only, and merging takes the position in the list


def describe_held(columns: Columns) -> bytes:
    """Local plan buffer of what a rank holds; equal columns of any two ranks give equal bytes.

    Raises InvalidArgumentError, OutsideTensorError for a box outside its tensor (both are ValueErrors).
    """
    try:
        return planning.describe(_batch(columns), world_size=_UNKNOWN)
    except OutOfRangeError as e:
        raise OutsideTensorError(str(e), e.details) from e


def describe_stored(columns: Columns) -> bytes:
    """Merged plan buffer of what is stored. Raises InvalidArgumentError, OutsideTensorError for a chunk outside its
    tensor (both are ValueErrors)."""
    try:
        return planning.describe(_batch(columns), kind="merged_save")
    except OutOfRangeError as e:
        raise OutsideTensorError(str(e), e.details) from e


def read(buffer: bytes) -> Columns:
    """The entries of a plan buffer."""
    batch = planning.entries(buffer)
    return Columns(
        names=batch.name_list(), dtypes=_values(batch.dtypes), shapes=_values(batch.shapes),
        shape_offsets=_values(batch.shape_offsets), box_ranges=_values(batch.box_ranges),
        box_offsets=_values(batch.box_offsets), box_sizes=_values(batch.box_sizes), numbers=batch.numbers,
        order=batch.order, object_sizes=batch.object_sizes, paths=_texts(batch.paths, batch.path_offsets),
        attributes=_parts(batch.attributes, batch.attribute_offsets),
        digests=None if batch.digests is None else bytes(batch.digests))


def merge(buffers: Sequence[bytes], *, owner: str, verify: bool, cover: str) -> tuple[bytes, list[memoryview]]:
    """The merged plan, and for each rank the numbers of what it keeps of its own plan (planning.Merged).

    Args:
        buffers: local plans, in rank order.
        owner: "exact", "lowest_rank" or "all".
        verify: compare sizes and digests of replicas.
        cover: "full", "disjoint" or "off".
    Raises InvalidArgumentError naming both ranks, or the boxes.
    """
    compared = "auto" if verify else "off"
    merged = planning.merge(buffers, owner=owner, preset=_PRESET, cover=cover, verify_replicas=compared)
    return merged.plan, merged.kept


def match(stored: bytes, wanted: Columns, *, proof: bool) -> Matches:
    """Common parts of wanted boxes and chunks, by names of stored entries.

    Args:
        proof: each wanted element comes from exactly one chunk, of equal chunks from the first; else all common parts.
    Raises InvalidArgumentError for what is not stored once.
    """
    found = planning.match(stored, _batch(wanted), cover="full" if proof else "off", first_replica=proof)
    return Matches(found.wanted, found.chunks, found.wanted_offsets, found.stored_offsets, found.sizes,
                   found.entry_begins)


def content_digest(content: Any) -> bytes:
    """XXH3-128 of a buffer."""
    return planning.content_digest(content)


def _batch(columns: Columns) -> planning.EntryBatch:
    names, name_offsets = _joined([name.encode("utf-8") for name in columns.names])
    paths, path_offsets = _blob(None if columns.paths is None else [path.encode("utf-8") for path in columns.paths])
    attributes, attribute_offsets = _blob(columns.attributes)
    kinds = array("i", (_AUTO if dtype == OBJECT else _SHARDED for dtype in columns.dtypes))
    return planning.EntryBatch(len(columns.names), names, name_offsets, *map(_filled, (
        columns.dtypes, kinds, columns.shapes, columns.shape_offsets, columns.box_ranges, columns.box_offsets,
        columns.box_sizes, columns.numbers, columns.order, None, columns.object_sizes, paths, path_offsets, attributes,
        attribute_offsets, columns.digests)))


def _filled(values: Any) -> Any:
    """None for a column without values."""
    return values if values is not None and len(values) else None


def _blob(parts: Sequence[bytes] | None) -> tuple[bytes | None, array[int] | None]:
    return _joined(parts) if parts is not None and any(parts) else (None, None)


def _joined(parts: Sequence[bytes]) -> tuple[bytes, array[int]]:
    offsets = array("Q", [0])
    total = 0
    for part in parts:
        total += len(part)
        offsets.append(total)
    return b"".join(parts), offsets


def _values(column: Any) -> Sequence[int]:
    values: Sequence[int] = () if column is None else column
    return values


def _parts(blob: Any, offsets: Any) -> list[bytes] | None:
    if blob is None or offsets is None:
        return None
    content = bytes(blob)
    return [content[begin:end] for begin, end in zip(offsets, offsets[1:], strict=False)]


def _texts(blob: Any, offsets: Any) -> list[str] | None:
    parts = _parts(blob, offsets)
    return None if parts is None else [part.decode("utf-8") for part in parts]
