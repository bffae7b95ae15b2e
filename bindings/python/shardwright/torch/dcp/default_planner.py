# SPDX-License-Identifier: Apache-2.0
"""The default planners and their steps, over the engine of shardwright."""
from typing import Any

from torch.distributed.checkpoint import default_planner as _original

from .planner import (
    DefaultLoadPlanner,
    DefaultSavePlanner,
    create_default_global_load_plan,
    create_default_global_save_plan,
    create_default_local_load_plan,
    create_default_local_save_plan,
)
from .planner import _check_box_bounds as _check_box_bounds
from .planner import _check_box_overlap as _check_box_overlap
from .planner import _create_default_local_metadata as _create_default_local_metadata
from .planner import _EmptyStateDictLoadPlanner as _EmptyStateDictLoadPlanner
from .planner import _validate_global_plan as _validate_global_plan

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan", "create_default_global_save_plan",
    "create_default_local_load_plan", "create_default_local_save_plan",
]


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
