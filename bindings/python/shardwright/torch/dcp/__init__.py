# SPDX-License-Identifier: Apache-2.0
"""What stands beside torch.distributed.checkpoint (DCP): planners for its own save and load.

    from shardwright.torch.dcp.planner import DefaultLoadPlanner, DefaultSavePlanner
"""
__all__ = ["planner"]

from . import planner
