# SPDX-License-Identifier: Apache-2.0
"""The steps of the planners as functions, over the engine of shardwright; what has no place there is torch's own."""
from typing import Any

from torch.distributed.checkpoint import planner_helpers as _original

from .planner import _compare_save_plans as _compare_save_plans
from .planner import _contains_usable_plan as _contains_usable_plan
from .planner import _create_read_items as _create_read_items
from .planner import _create_write_items as _create_write_items
from .planner import _init_state_dict as _init_state_dict
from .planner import _merge_delta_local_plans as _merge_delta_local_plans
from .planner import create_read_items_for_chunk_list

__all__ = ["create_read_items_for_chunk_list"]


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
