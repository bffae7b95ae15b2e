# SPDX-License-Identifier: Apache-2.0
"""Comparing and merging plans of two saves, for hosts that keep a plan cache of their own. Pure functions."""
from __future__ import annotations

from collections.abc import Sequence

from torch.distributed.checkpoint.planner import SavePlan, WriteItem

from ._errors import InvalidPlanError
from ._items import untouched


def _same_data(a: WriteItem, b: WriteItem) -> bool:
    one, other = a.tensor_data, b.tensor_data
    if one is None or other is None:
        return one is other
    if one.size != other.size or one.properties.dtype != other.properties.dtype:
        return False
    if one.chunk is None or other.chunk is None:
        return one.chunk is other.chunk
    return one.chunk.offsets == other.chunk.offsets and one.chunk.sizes == other.chunk.sizes


def compare_save_plans(plan: SavePlan, other_plan: SavePlan) -> bool:
    """True for plans whose items describe the same tensors, parts, dtypes and objects in one order. Planner data and
    storage data are not compared. Two equal plan buffers are not unpacked."""
    if plan.usable != other_plan.usable:
        return False
    one, other = untouched(plan.items), untouched(other_plan.items)
    if one is not None and one == other:
        return True
    if len(plan.items) != len(other_plan.items):
        return False
    return all(a.type == b.type and a.index == b.index and a.index.index == b.index.index and _same_data(a, b)
               for a, b in zip(plan.items, other_plan.items, strict=True))


def contains_usable_plan(delta_plans: Sequence[SavePlan]) -> bool:
    """True when a rank has sent a plan of its own."""
    return any(plan and plan.usable for plan in delta_plans)


def merge_delta_local_plans(cached_plans: Sequence[SavePlan], delta_plans: Sequence[SavePlan]) -> list[SavePlan]:
    """The plan that each rank has sent, or its cached one where it sent none. InvalidPlanError where the number of
    ranks has changed."""
    if len(cached_plans) != len(delta_plans):
        raise InvalidPlanError(f"plans of {len(cached_plans)} ranks are cached and {len(delta_plans)} ranks have sent one")
    return [cached if sent and not sent.usable else sent for cached, sent in zip(cached_plans, delta_plans, strict=True)]
