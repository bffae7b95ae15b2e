# SPDX-License-Identifier: Apache-2.0
"""HyperParallel's standard planners over numpy values and plain descriptors, without a framework.

Names, signatures, data classes and results are those of HyperParallel 0.1.0; shardwright.torch.hyperparallel and
shardwright.mindspore.hyperparallel offer the same over the tensors of their framework. Differences are listed in
docs/compatibility.md. Plans and metadata are views over plan buffers.

    planner = StandardSavePlanner()
    planner.configure_planner(state, rank=rank)
    plans, metadata = planner.build_global_plan(gathered)     # the build_local_plan() of all ranks
    planner.finalize_plan(plans[rank])
"""
from .chunk_lists import create_chunk_list_for_tensor
from .geometry import narrow_tensor_by_index
from .layout_files import get_current_layout, get_global_layout
from .load import StandardLoadPlanner
from .neutral import *  # noqa: F403
from .neutral import __all__ as _neutral
from .save import StandardSavePlanner

__all__ = _neutral + [
    "StandardLoadPlanner", "StandardSavePlanner", "create_chunk_list_for_tensor", "get_current_layout",
    "get_global_layout", "narrow_tensor_by_index"
]
