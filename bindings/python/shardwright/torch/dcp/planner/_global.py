# SPDX-License-Identifier: Apache-2.0
"""The global step of a save: the plans of all ranks in, what each rank writes and the metadata out.

Plans that columns can hold go through the engine, untouched ones without being unpacked. Plans with items that only
Python can hold (classes of the host, one item listed twice) are merged item by item, by the same rules.
"""
from __future__ import annotations

import contextlib
import dataclasses
import gc
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from torch.distributed.checkpoint.metadata import BytesStorageMetadata, Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.planner import SavePlan, WriteItemType

from ....errors import ShardwrightError
from . import _engine
from ._boxes import validate_global_plan
from ._errors import InvalidPlanError, PlanCheckError, PlanConflictError
from ._items import PlanItems, StoredEntries, columns_of_items, kept_items, untouched

logger = logging.getLogger(__name__)
_MESSAGE_MAX = 500


# ---- by the engine ----

@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """While many objects are made and none is dropped, collections would find nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def merged_by_engine(plans: Sequence[SavePlan], owner: str) -> tuple[list[SavePlan], Metadata] | None:
    """Plans and metadata of a save; None where columns cannot hold the plans.

    Args:
        plans: local plans in rank order.
        owner: "exact" chooses among replicas as torch does, "lowest_rank", or "balanced" by bytes.
    Raises the engine's refusal of what ranks hold together.
    """
    buffers: list[_engine.Plan] = []
    looked_at: list[bool] = []
    for plan in plans:
        found = untouched(plan.items)
        if found is not None and found.numbers is None:
            buffers.append(found.plan)
        elif (columns := columns_of_items(list(plan.items))) is not None:  # what was merged before is merged as its items
            buffers.append(_engine.describe(columns))
        else:
            return None
        looked_at.append(found is None or found.numbers is not None)
    merged, kept = _engine.merge(buffers, owner, "full" if len(plans) > 1 else "disjoint")
    with collector_paused():
        final = [dataclasses.replace(plan, items=kept_items(plan.items, numbers) if looked
                                     else PlanItems(buffer, numbers, getattr(plan.items, "digests", None)))
                 for plan, buffer, looked, numbers in zip(plans, buffers, looked_at, kept, strict=True)]
    return final, Metadata(StoredEntries(merged))


def merged(plans: Sequence[SavePlan], owner: str) -> tuple[list[SavePlan], Metadata]:
    """Plans and checked metadata of a save. A plan that the engine refuses is looked at item by item, so that the error
    has the type and words of torch; InvalidPlanError (a ValueError) lists the findings about chunks."""
    refusal: ShardwrightError | None = None
    try:
        done = merged_by_engine(plans, owner)
    except ShardwrightError as e:
        done, refusal = None, e
    if done is not None:
        return done
    final, metadata = create_default_global_save_plan(dedup_save_plans(list(plans), owner == "lowest_rank"))
    check_global_plan(final, metadata)
    if refusal is not None:
        raise refusal
    return final, metadata


# ---- item by item ----

def dedup_save_plans(all_plans: list[SavePlan], save_to_lowest_rank: bool = False) -> list[SavePlan]:
    """The plans with each index on one rank only, chosen as torch 2.15 does.

    Indexes are taken in the order in which they are first listed. The rank with the least bytes so far takes the item,
    among equal ones the first in iteration order of a set of their numbers; an item weighs the bytes of its whole
    tensor, or 1. With `save_to_lowest_rank` the lowest rank takes each. Equal indexes inside one plan are all kept.
    """
    holders: dict[Any, set[int]] = {}
    last: dict[Any, Any] = {}
    for number, plan in enumerate(all_plans):
        for item in plan.items:
            holders.setdefault(item.index, set()).add(number)
            last[item.index] = item
    load = [0] * len(all_plans)
    owner: dict[Any, int] = {}
    for index, numbers in holders.items():
        owner[index] = min(numbers) if save_to_lowest_rank else min(numbers, key=load.__getitem__)
        load[owner[index]] += last[index].tensor_storage_size() or 1
    return [dataclasses.replace(plan, items=[item for item in plan.items if owner[item.index] == number])
            for number, plan in enumerate(all_plans)]


def dedup_tensors(all_plans: list[SavePlan]) -> list[SavePlan]:
    """The plans with each index on the first rank that lists it; indexes that one rank lists several times stay there."""
    owner: dict[Any, int] = {}
    for number, plan in enumerate(all_plans):
        for item in plan.items:
            owner.setdefault(item.index, number)
    kept = [[item for item in plan.items if owner[item.index] == number] for number, plan in enumerate(all_plans)]
    return [plan if len(items) == len(plan.items) else dataclasses.replace(plan, items=items)
            for plan, items in zip(all_plans, kept, strict=True)]


def _conflict(name: str, rank: int, other: int, what: str) -> PlanConflictError:
    return PlanConflictError(f"item.index.fqn not in md: '{name}' of rank {rank} {what} of rank {other}",
                             {"tensor": name, "rank": str(rank), "other_rank": str(other)})


def _check_new_item(item: Any, known: Any, rank: int, other: int) -> None:
    """A name may come again only as another shard of the same tensor."""
    name = item.index.fqn
    if item.type != WriteItemType.SHARD:
        raise _conflict(name, rank, other, "is no shard, and the name is already that of an item")
    if isinstance(known, BytesStorageMetadata):
        raise _conflict(name, rank, other, "is a shard, and the name is already that of a byte object")
    data = item.tensor_data
    if data is not None and (known.size != data.size or known.properties.dtype != data.properties.dtype):
        raise _conflict(name, rank, other, f"is a part of a {data.properties.dtype} tensor of shape {tuple(data.size)}, "
                                           f"not of {known.properties.dtype} {tuple(known.size)} as that")


def create_default_global_save_plan(all_plans: list[SavePlan], rewrite_index_hints: bool = True
                                    ) -> tuple[list[SavePlan], Metadata]:
    """Numbers the chunks of every tensor in rank order, then item order, and lists them in a metadata.

    Args:
        all_plans: plans in rank order, without replicas.
        rewrite_index_hints: the position hint of an item becomes the number of its chunk.
    Raises PlanConflictError (an AssertionError) where a name comes twice in ways that cannot both be stored, and
    PlanCheckError (an AssertionError) for tensor items without data or box.
    """
    entries: dict[str, Any] = {}
    ranks: dict[str, int] = {}
    final = []
    for rank, plan in enumerate(all_plans):
        items = []
        for item in plan.items:
            name = item.index.fqn
            if name in entries:
                _check_new_item(item, entries[name], rank, ranks[name])
            ranks.setdefault(name, rank)
            if item.type == WriteItemType.BYTE_IO:
                entries[name] = BytesStorageMetadata()
                items.append(item)
                continue
            data = item.tensor_data
            if data is None:
                raise PlanCheckError(f"item.tensor_data is not None: '{name}' of rank {rank} has none", {"tensor": name})
            if data.chunk is None:
                raise PlanCheckError(f"Cannot create MD for tensor without bounds. FQN: {name}", {"tensor": name})
            stored = entries.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
            if rewrite_index_hints:
                index = dataclasses.replace(item.index, index=len(stored.chunks))
                item = dataclasses.replace(item, index=index)
            items.append(item)
            stored.chunks.append(data.chunk)
        final.append(dataclasses.replace(plan, items=items))
    return final, Metadata(entries)


def check_global_plan(global_plan: list[SavePlan], metadata: Metadata) -> None:
    """Raises InvalidPlanError (a ValueError) with the findings about a plan, at most 500 characters of them."""
    findings = "; ".join(validate_global_plan(global_plan, metadata))
    if len(findings) > _MESSAGE_MAX:
        findings = findings[:_MESSAGE_MAX] + "... (truncated)"
    if findings:
        raise InvalidPlanError(f"Failed to validate global plan: {findings}")


# ---- replicas ----

def differing_replicas(plans: Sequence[SavePlan]) -> list[str]:
    """Names of byte objects whose content is known and differs between ranks."""
    seen: dict[str, bytes] = {}
    found: dict[str, None] = {}
    last: dict[str, bytes] | None = None
    for plan in plans:
        digests = getattr(plan.items, "digests", None)
        if not digests or digests == last:
            continue
        last = digests
        for name, digest in digests.items():
            if seen.setdefault(name, digest) != digest:
                found[name] = None
    return list(found)
