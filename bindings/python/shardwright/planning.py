# SPDX-License-Identifier: Apache-2.0
"""Planning by descriptions alone: flat arrays in, plan buffers between ranks, flat arrays out.

Every rank describes what it holds, one rank merges the plans of all:

    plan = describe(EntryBatch(...), rank=rank, world_size=world_size)
    merged, kept = merge(plans_of_all_ranks, owner="exact", preset="torch")
    mine = [box for box, number in enumerate(kept[rank]) if number != NOT_KEPT]

Arrays come in as anything with the buffer protocol (array, memoryview, bytes, numpy) and are read where they lie, or as
lists, which are copied; they go out as memoryviews. The GIL is given up while the library works. No tensor memory, storage or checkpoint is needed.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from . import _options
from ._library import native

NOT_KEPT = 0xFFFFFFFF  # number of a box that another rank writes

_PLAN_KINDS = {"local_save": 1, "merged_save": 5}
_FIRST_REPLICA, _RANK = 1, 2
_FORMATS = {"names": "B", "name_offsets": "Q", "dtypes": "i", "kinds": "i", "shapes": "q", "shape_offsets": "Q",
            "box_ranges": "Q", "box_offsets": "q", "box_sizes": "q", "numbers": "Q", "order": "Q", "secondary": "B",
            "object_sizes": "Q", "paths": "B", "path_offsets": "Q", "attributes": "B", "attribute_offsets": "Q",
            "digests": "B"}
_MATCH_FORMATS = "QQqqqQ"  # of the parts of a match


def _numbers(data: Any, code: Any) -> memoryview:
    """The bytes as numbers of a struct format."""
    return memoryview(data).cast(code)


@dataclass
class EntryBatch:
    """Entries in flat arrays: tensors with boxes, and byte objects. Names are unique.

    Boxes are numbered through all entries in their order; a byte object has one box of no dimensions. Texts and bytes are
    blobs that `count` + 1 ascending offsets cut, the first 0.

    Args:
        count: number of entries.
        names, name_offsets: UTF-8 names (bytes, uint64).
        dtypes: int32, `dtype_number(name)` of a tensor, 0 = a byte object.
        kinds: int32, 0 auto, 1 replicated, 2 sharded, 3 rank_local. None = auto: replicated for objects and for one box
            that is the whole tensor.
        shapes, shape_offsets: global extents (int64, uint64).
        box_ranges: uint64; entry i holds boxes box_ranges[i] to box_ranges[i + 1]. None = each tensor as a whole.
        box_offsets, box_sizes: int64, as many values per box as the tensor has dimensions.
        numbers: uint64 per box: piece of the entry (local plans), rank that writes (merged plans). None = 0, 1, 2, ... in
            each entry of a local plan, 0 in merged ones.
        order: uint64, all boxes in the order in which the host lists them. None = as they stand.
        secondary: one byte per box, 1 = not a main replica (preset megatron, owner exact). None = 0.
        object_sizes: uint64 per entry, bytes of an object, 0 = unknown.
        paths, path_offsets: nested paths. None = flat.
        attributes, attribute_offsets: bytes of the caller's own; the merged plan has those of the first rank.
        digests: 16 bytes per entry that holders must agree on, zeros = not compared.
    """

    count: int
    names: Any
    name_offsets: Any
    dtypes: Any
    kinds: Any = None
    shapes: Any = None
    shape_offsets: Any = None
    box_ranges: Any = None
    box_offsets: Any = None
    box_sizes: Any = None
    numbers: Any = None
    order: Any = None
    secondary: Any = None
    object_sizes: Any = None
    paths: Any = None
    path_offsets: Any = None
    attributes: Any = None
    attribute_offsets: Any = None
    digests: Any = None

    def name_list(self) -> list[str]:
        """The names as texts."""
        blob, cuts = bytes(self.names), self.name_offsets
        return [blob[cuts[i]:cuts[i + 1]].decode() for i in range(self.count)]

    def _fields(self) -> dict[str, Any]:
        """Fields of shw_entry_batch."""
        return {name: getattr(self, name) for name in _NAMES}


_NAMES = tuple(field.name for field in fields(EntryBatch))


class Merged(NamedTuple):
    """What `merge` gives: the merged plan, and for each rank what it keeps of its own: one uint32 per box of its plan, as
    `entries` lists them, the number of its chunk in its tensor (0 for an object), or NOT_KEPT where another rank writes it."""

    plan: Any
    kept: list[memoryview]


class Matches(NamedTuple):
    """One row per common part of a wanted box and a chunk, grouped by wanted entry.

    wanted (uint64): number of the wanted box. chunks (uint64): number of the chunk in its tensor. wanted_offsets,
    stored_offsets, sizes (int64): where the part begins in either, and its sizes, as many values per row as the tensor
    has dimensions. entry_begins (uint64): first row of each entry and the end. A stored object is one row without
    dimensions.
    """

    wanted: memoryview
    chunks: memoryview
    wanted_offsets: memoryview
    stored_offsets: memoryview
    sizes: memoryview
    entry_begins: memoryview


def describe(batch: EntryBatch, *, kind: str = "local_save", rank: int = 0, world_size: int = 0,
             kinds: Iterable[tuple[str, str]] = (), agreement: str = "") -> bytes:
    """Plan buffer of what the entries describe; equal entries give equal bytes.

    Args:
        kind: "local_save" = what `rank` of `world_size` holds; "merged_save" = what is stored, each box one chunk.
        world_size: 0 = not known: such a plan is merged at any place and gets its place for its rank.
        kinds: pairs of a glob and "replicated", "sharded", "rank_local"; the first that matches a name counts.
        agreement: lines "option=value" that all ranks must have alike.

    Raises:
        InvalidArgumentError, OutOfRangeError (a box leaves its tensor), AlreadyExistsError (a name comes twice).
    """
    options = {"kind": _options.word("kind", kind, _PLAN_KINDS), "rank": rank, "world_size": world_size,
               **describe_fields(kinds, agreement)}
    plan: bytes = native.shw_plan_describe(options, batch._fields())[0]
    return plan


def describe_fields(kinds: Iterable[tuple[str, str]], agreement: str) -> dict[str, Any]:
    """What each shw_describe_options says of kinds and of the other ranks."""
    rules = [(glob, _options.word("kinds", word, _options.KINDS)) for glob, word in kinds]
    return {**_options.kind_fields(rules), "agreement": agreement}


def entries(plan: Any) -> EntryBatch:
    """The entries of a local or merged plan, as they were described. DataLossError, InvalidArgumentError."""
    found = native.shw_plan_entries(native.shw_plan_create(plan))
    arrays = {name: None if (data := getattr(found, name)) is None else _numbers(data, code)
              for name, code in _FORMATS.items()}
    return EntryBatch(found.count, **arrays)


def merge(plans: Sequence[Any], *, owner: str = "balanced", preset: str = "native", cover: str = "full",
          verify_replicas: str = "auto") -> Merged:
    """Merges the local plans of all ranks, which come in rank order.

    Args:
        plans: plan buffers, one per rank.
        owner: who writes what several ranks hold: "balanced", "lowest_rank", "exact" (as the preset's original does) or
            "all" (each replica is a chunk).
        preset: "native", "hyperparallel", "torch" or "megatron": which boxes are the same, and how chunks are numbered.
        cover: what is proved about the boxes of each tensor: "full" (they tile it), "disjoint", "off".
        verify_replicas: "off" = sizes and digests of replicas are not compared.

    Raises:
        InvalidArgumentError: ranks contradict each other (both are named), or the proof fails (detail "cover").
        DataLossError, UnimplementedError: a plan is damaged or newer than this library.
    """
    views = merge_views(plans, owner=owner, preset=preset, cover=cover, verify_replicas=verify_replicas)
    return Merged(bytes(views.plan), [_numbers(bytes(numbers), "I") for numbers in views.kept])


def merge_views(plans: Sequence[Any], *, owner: str = "balanced", preset: str = "native", cover: str = "full",
                verify_replicas: str = "auto") -> Merged:
    """`merge` without a copy of what it makes: its parts are memoryviews of one block of memory, which lives as long as
    one of them."""
    options = {"owner": _options.word("owner", owner), "preset": _options.word("preset", preset),
               "cover": _options.word("cover", cover), "verify_replicas": _options.word("verify_replicas", verify_replicas)}
    parts: list[Any] = native.shw_py_plan_merge(options, plans if isinstance(plans, list) else list(plans))
    return Merged(parts[0], [_numbers(part, "I") for part in parts[1:]])


def match(stored: Any, wanted: EntryBatch, *, order: str = "wanted", cover: str = "full", missing: str = "error",
          first_replica: bool = False, rank: int | None = None) -> Matches:
    """Intersects wanted boxes with the chunks of a merged plan, by name.

    Args:
        stored: plan buffer of kind merged_save.
        order: "wanted" = wanted boxes in their order, for each the chunks by number; "sweep" = the order of torch 2.15.
        cover: each wanted box is filled exactly once ("full"), at most once ("disjoint"), or not looked at ("off").
        missing: "error", or "report" = names that are not stored have no rows.
        first_replica: of chunks with equal boxes only the first counts.
        rank: who wants: its rank_local entries are found, before shared ones of their name; None = shared ones only.

    Raises:
        NotFoundError with the nearest names; InvalidArgumentError for other shapes and for what is not filled.
    """
    options = {"order": _options.word("order", order), "cover": _options.word("cover", cover),
               "missing": _options.word("missing", missing), "rank": rank or 0,
               "flags": (_FIRST_REPLICA if first_replica else 0) | (0 if rank is None else _RANK)}
    parts = native.shw_plan_match(options, native.shw_plan_create(stored), wanted._fields())
    return Matches(*(_numbers(part, code) for part, code in zip(parts, _MATCH_FORMATS)))


def owners(weights: Any, sets: Any, set_offsets: Any, holders: Any, rank_count: int, *,
           secondary: Any = None) -> memoryview:
    """Who writes each shard, as the preset megatron with owner "exact" chooses, from arrays alone.

    Args:
        weights: uint64, bytes of each shard.
        sets: uint32, the set of ranks that holds each shard.
        set_offsets: uint64; set s is holders[set_offsets[s]:set_offsets[s + 1]].
        holders: int32, ranks of all sets, ascending in each.
        secondary: one byte per shard, 1 = chosen after all others.

    Returns:
        int32 ranks, one per shard.
    """
    chosen = native.shw_py_plan_owners((weights, sets, secondary, set_offsets, holders), rank_count)
    return memoryview(chosen).cast("i")


def digest(plan: Any) -> bytes:
    """16 bytes of what a plan describes: equal for equal entries in equal order on equal ranks, whatever their content
    digests are."""
    made: bytes = native.shw_plan_digest(native.shw_plan_create(plan))[0]
    return made


def content_digest(data: Any) -> bytes:
    """XXH3-128 of a buffer in canonical byte order, as `EntryBatch.digests` wants it."""
    made: bytes = native.shw_content_digest(data)[0]
    return made
