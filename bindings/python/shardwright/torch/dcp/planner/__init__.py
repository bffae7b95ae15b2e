# SPDX-License-Identifier: Apache-2.0
"""The planners of torch.distributed.checkpoint over the engine of shardwright, under their own names.

    import torch.distributed.checkpoint as dcp
    from shardwright.torch.dcp.planner import DefaultLoadPlanner, DefaultSavePlanner

    dcp.save(state, checkpoint_id=path, planner=DefaultSavePlanner())
    dcp.load(state, checkpoint_id=path, planner=DefaultLoadPlanner())

Plans, items and metadata are torch's own classes; for equal input they are those that torch 2.15 makes. What differs on
purpose is listed in docs/compatibility.md.
"""
from __future__ import annotations

from typing import Any

from torch.distributed.checkpoint import planner as _original
from torch.distributed.checkpoint.planner import (
    BytesIOWriteData,
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)

from ._boxes import check_box_bounds as _check_box_bounds
from ._boxes import check_box_overlap as _check_box_overlap
from ._boxes import create_read_items_for_chunk_list
from ._boxes import validate_global_plan as _validate_global_plan
from ._delta import compare_save_plans as _compare_save_plans
from ._delta import contains_usable_plan as _contains_usable_plan
from ._delta import merge_delta_local_plans as _merge_delta_local_plans
from ._errors import (
    DamagedObjectError,
    InvalidPlanError,
    MissingKeyError,
    PlanCheckError,
    PlanConflictError,
    StalePlanError,
    UnfilledError,
    UntrustedObjectError,
)
from ._global import create_default_global_save_plan, dedup_save_plans, dedup_tensors
from ._items import PlanItems
from ._load import DefaultLoadPlanner, create_default_global_load_plan, create_default_local_load_plan
from ._load import EmptyStateDictLoadPlanner as _EmptyStateDictLoadPlanner
from ._load import create_read_items as _create_read_items
from ._meta import flatten_sharded_tensors as _flatten_sharded_tensors
from ._meta import materialise_meta_tensors as _init_state_dict
from ._nested import flatten_state_dict, get_element, set_element, unflatten_state_dict
from ._save import DefaultSavePlanner, create_default_local_save_plan
from ._save import create_default_local_metadata as _create_default_local_metadata
from ._values import write_items as _create_write_items

__all__ = [
    "BytesIOWriteData", "DamagedObjectError", "DefaultLoadPlanner", "DefaultSavePlanner", "InvalidPlanError",
    "LoadItemType", "LoadPlan", "LoadPlanner", "MissingKeyError", "PlanCheckError", "PlanConflictError", "PlanItems",
    "ReadItem", "SavePlan", "SavePlanner", "StalePlanError", "TensorWriteData", "UnfilledError", "UntrustedObjectError",
    "WriteItem", "WriteItemType", "_EmptyStateDictLoadPlanner", "_check_box_bounds", "_check_box_overlap",
    "_compare_save_plans", "_contains_usable_plan", "_create_default_local_metadata", "_create_read_items",
    "_create_write_items", "_flatten_sharded_tensors", "_init_state_dict", "_merge_delta_local_plans",
    "_validate_global_plan", "create_default_global_load_plan", "create_default_global_save_plan",
    "create_default_local_load_plan", "create_default_local_save_plan", "create_read_items_for_chunk_list",
    "dedup_save_plans", "dedup_tensors", "flatten_state_dict", "get_element", "set_element", "unflatten_state_dict",
]


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
