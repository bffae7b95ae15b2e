# SPDX-License-Identifier: Apache-2.0
"""Plans of all ranks into one: replicas are compared and dropped, chunks numbered, and their cover proved."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidArgumentError
from . import engine
from .columns import Columns, ColumnsBuilder
from .items import MetadataEntries, SaveItems, properties_text
from .model import Metadata, SavePlan, WriteItem, WriteItemType, dtype_code


def encoded_items(items: Sequence[WriteItem]) -> Columns:
    """Columns of items that somebody has made or changed by hand. InvalidArgumentError for what is no item."""
    builder = ColumnsBuilder()
    for item in items:
        if item.type == WriteItemType.TENSOR and item.tensor_data:
            chunk, properties = item.tensor_data["chunk"], item.tensor_data["properties"]
            row = builder.tensor(item.index.fqn, dtype_code(properties.dtype), _integers(item.tensor_data["size"]),
                                 attribute=properties_text(properties))
            if _integers(chunk.offsets) != _integers(item.index.offset):
                raise InvalidArgumentError(f"{item.index.fqn}: the item's index says offset {item.index.offset}, its "
                                           f"chunk {chunk.offsets}", {"tensor": item.index.fqn})
            builder.add(row, (_integers(chunk.offsets), _integers(chunk.sizes)))
        elif item.type == WriteItemType.BYTE_IO:
            builder.object(item.index.fqn)
        else:
            raise InvalidArgumentError(
                f"{item.index.fqn}: an item of type {item.type} without tensor data cannot be saved",
                {"tensor": item.index.fqn})
    return builder.build()


def buffer_of(plan: SavePlan) -> bytes:
    """The local plan buffer of a plan; its own where the items are still those of the planner."""
    items = plan.items
    if isinstance(items, SaveItems) and items.numbers is None:
        return items.buffer
    return engine.describe_held(encoded_items(items))


def objects_of(plan: SavePlan) -> Mapping[str, Any]:
    """Values of the objects of a plan, by name."""
    if isinstance(plan.items, SaveItems):
        return plan.items.objects
    return {item.index.fqn: item.bytes_io_data for item in plan.items if item.type == WriteItemType.BYTE_IO}


def merge_plans(plans: Sequence[SavePlan], *, owner: str, verify: bool) -> tuple[list[SavePlan], Metadata]:
    """Final plans of all ranks, and metadata.

    Args:
        plans: in rank order.
        owner: who writes a replica: "exact" (chunks with one holder count first, the others go in the order in which
            they are listed to the holder with the fewest bytes, ties to the lowest rank), "lowest_rank", or "all"
            (everybody).
        verify: compare digests and sizes of replicas.
    Raises InvalidArgumentError naming both ranks and both values when plans differ in dtype, shape, sizes or content,
    and naming the boxes when chunks overlap or leave a hole. Of one plan alone holes are not looked for: the rest of a
    sharded tensor is then in the plans of others.
    """
    if not plans:
        return [], Metadata({})
    _check_properties(plans)
    buffers = [buffer_of(plan) for plan in plans]
    merged, kept = engine.merge(buffers, owner=owner, verify=verify, cover="full" if len(plans) > 1 else "disjoint")
    final = [dataclasses.replace(plan, items=SaveItems(buffer, objects_of(plan), numbers, numbered=True))
             for plan, buffer, numbers in zip(plans, buffers, kept, strict=True)]
    entries = MetadataEntries(merged)
    return final, Metadata(entries, planner_data=_planner_data(plans, entries))


def remove_redundant_plans(all_plans: list[SavePlan], save_to_minimum_rank: bool = False) -> list[SavePlan]:
    """Plans of all ranks without the items that another rank writes; order kept, chunks not numbered.

    Args:
        all_plans: local plans, in rank order.
        save_to_minimum_rank: give replicas to their lowest holder instead of the one with the fewest bytes so far.
    Replicas are items of equal name and offset; a number in the index does not count. Ties go to the lowest rank.
    Raises InvalidArgumentError (a ValueError) when replicas differ in dtype, shape or sizes, naming both ranks, and
    when a plan lists an item twice.
    """
    if len(all_plans) < 2:
        return list(all_plans)
    _check_properties(all_plans)
    buffers = [buffer_of(plan) for plan in all_plans]
    _, kept = engine.merge(buffers, verify=True, cover="disjoint",
                           owner="lowest_rank" if save_to_minimum_rank else "exact")
    return [dataclasses.replace(plan, items=_without_dropped(plan, buffer, numbers))
            for plan, buffer, numbers in zip(all_plans, buffers, kept, strict=True)]


def _without_dropped(plan: SavePlan, buffer: bytes, numbers: Any) -> Sequence[WriteItem]:
    survivors = SaveItems(buffer, objects_of(plan), numbers)
    if isinstance(plan.items, SaveItems):
        return survivors
    keys = {(item.index.fqn, item.index.offset) for item in survivors}
    return [item for item in plan.items if (item.index.fqn, _integers(item.index.offset)) in keys]


def _check_properties(plans: Sequence[SavePlan]) -> None:
    """Properties of items that were made by hand: beyond the dtype nothing of them is in the columns."""
    first: dict[str, tuple[int, Any]] = {}
    for rank, plan in enumerate(plans):
        if isinstance(plan.items, SaveItems):
            continue
        for item in plan.items:
            if item.type == WriteItemType.TENSOR and item.tensor_data:
                known, properties = first.setdefault(item.index.fqn, (rank, item.tensor_data["properties"]))
                if properties != item.tensor_data["properties"]:
                    raise InvalidArgumentError(
                        f"{item.index.fqn} has properties {properties} on rank {known} and "
                        f"{item.tensor_data['properties']} on rank {rank}", {
                            "tensor": item.index.fqn,
                            "rank": str(rank)
                        })


def _planner_data(plans: Sequence[SavePlan], entries: MetadataEntries) -> dict[str, Any] | None:
    """Declarations of the ranks, and nested paths; None when there are none."""
    rank_local: set[str] = set()
    reduced: dict[str, list[str]] = {}
    for plan in plans:
        if isinstance(plan.planner_data, dict):
            rank_local.update(plan.planner_data.get("rank_local", ()))
            reduced.update(plan.planner_data.get("reduced", {}))
    columns = entries.columns if any(plan.items for plan in plans) else None
    paths = {} if columns is None or columns.paths is None else {
        name: path for name, path in zip(columns.names, columns.paths, strict=True) if path}
    known = {"rank_local": sorted(rank_local), "reduced": reduced, "paths": paths}
    data = {key: value for key, value in known.items() if value}
    return data or None


def _integers(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
