# SPDX-License-Identifier: Apache-2.0
"""Global plans: who writes what in a whole job, by arithmetic on layouts.

Every rank describes what it holds; ranks that differ only by their place in a mesh make equal descriptions. They exchange
16 bytes each, one description per distinct digest, and parts where there are any; then every rank can make the same plan:

    mine = describe(batch, layouts, rank=rank, world_size=world_size)
    digests = ...                                   # all_gather of mine.digest
    chosen = representatives(digests)               # these ranks send mine.description
    plan = GlobalPlan(digests, descriptions, parts)
    plan.write_list(rank, generation)

The plan equals the merge of explicit local plans in every byte (`expand`), and its cost does not grow with ranks x
tensors.
"""
from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from . import _options
from ._library import native
from .layout import Layout
from .planning import EntryBatch, describe_fields

_DIGEST_BYTES = 16


class Description(NamedTuple):
    """What one rank says. description: a plan buffer that names no rank. digest: 16 bytes that stand for it. part: a plan
    buffer of what only this rank knows (boxes without a layout, sizes of rank_local objects), b"" when there is nothing.
    """

    description: bytes
    digest: bytes
    part: bytes


class Expanded(NamedTuple):
    """The explicit plan: a plan buffer of kind merged_save, and a write list per rank."""

    plan: bytes
    write_lists: list[bytes]


def describe(batch: EntryBatch, layouts: Sequence[Layout | None] | None = None, *, rank: int, world_size: int,
             kinds: Iterable[tuple[str, str]] = (), agreement: str = "") -> Description:
    """Describes what `rank` of `world_size` holds.

    Args:
        batch: entries; numbers, order, secondary and attributes are None. Boxes of an entry with a layout are not listed.
        layouts: one per entry, None where the boxes of the batch count. None = no entry has one.
        kinds: pairs of a glob and "replicated", "sharded", "rank_local"; the first that matches a name counts.
        agreement: lines "option=value" that all ranks must have alike.

    Raises:
        InvalidArgumentError, OutOfRangeError (a box leaves its tensor), AlreadyExistsError (a name comes twice).
    """
    options = {"rank": rank, "world_size": world_size, **describe_fields(kinds, agreement)}
    handles = None if layouts is None else [None if each is None else each._handle for each in layouts]
    if handles is not None and len(handles) != batch.count:
        raise ValueError("expected as many layouts as entries")
    return Description(*native.shw_global_plan_describe(options, batch._fields(), handles))


def _joined(digests: Sequence[bytes]) -> bytes:
    if any(len(digest) != _DIGEST_BYTES for digest in digests):
        raise ValueError(f"a digest has {_DIGEST_BYTES} bytes")
    return b"".join(digests)


def representatives(digests: Sequence[bytes]) -> list[int]:
    """Ranks that send their description: the lowest of each distinct digest. digests: one per rank."""
    found, = native.shw_global_plan_representatives(_joined(digests))
    return memoryview(found).cast("i").tolist()


class GlobalPlan:
    """Who writes what in a whole job. Immutable.

    Args:
        digests: 16 bytes of each rank.
        descriptions: those of `representatives(digests)`, in that order.
        parts: those of the ranks that have one, in any order; empty ones are skipped.
        owner: "balanced", "lowest_rank", or "exact" with preset "megatron".
        verify_replicas: "off" = sizes and digests of replicas are not compared.

    Raises:
        InvalidArgumentError: ranks contradict each other, or chunks do not cover a tensor; ranks are named.
        DataLossError, UnimplementedError: a buffer is damaged or newer than this library.
    """

    def __init__(self, digests: Sequence[bytes], descriptions: Sequence[bytes], parts: Iterable[bytes] = (), *,
                 owner: str = "balanced", preset: str = "native", verify_replicas: str = "auto") -> None:
        options = {"owner": _options.word("owner", owner), "preset": _options.word("preset", preset),
                   "verify_replicas": _options.word("verify_replicas", verify_replicas)}
        self._handle: Any = native.shw_global_plan_create(options, _joined(digests), list(descriptions),
                                                          [part for part in parts if len(part) > 0])

    @property
    def totals(self) -> dict[str, int]:
        """Counts: ranks, descriptions, tensors, items, chunks, objects, files, bytes, most_bytes."""
        counts: dict[str, int] = json.loads(native.shw_global_plan_json(self._handle)[0])
        del counts["schema"]
        return counts

    @property
    def digest(self) -> bytes:
        """16 bytes that are equal on all ranks that made this plan."""
        found: bytes = native.shw_global_plan_digest(self._handle)[0]
        return found

    @property
    def rank_bytes(self) -> memoryview:
        """uint64: bytes that each rank writes, without padding."""
        return memoryview(native.shw_global_plan_rank_bytes(self._handle)[0]).cast("Q")

    def owners(self, name: str) -> memoryview:
        """int32: rank that writes each chunk of a tensor that is not rank_local. NotFoundError."""
        return memoryview(native.shw_global_plan_owners(self._handle, name.encode())[0]).cast("i")

    def write_list(self, rank: int, generation: str, plan_digest: bytes | None = None) -> bytes:
        """What the rank writes, a plan buffer of kind write_list.

        Args:
            generation: 32 hex digits.
            plan_digest: 16 bytes that the list carries; None = `digest`.
        """
        found: bytes = native.shw_global_plan_write_list(self._handle, rank, generation, plan_digest)[0]
        return found

    def expand(self, generation: str) -> Expanded:
        """The explicit plan; costs what that costs."""
        first, *lists = native.shw_global_plan_expand(self._handle, generation)
        return Expanded(first, lists)
