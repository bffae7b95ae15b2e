# SPDX-License-Identifier: Apache-2.0
"""create_local_plan of shardwright.torch.dcp.planner, as torch's ReadItems; that everything wanted is filled is proved."""
from torch_reads import LoadPlan


class Contender(LoadPlan):
    def planner_class(self):
        from shardwright.torch.dcp.planner import DefaultLoadPlanner
        return DefaultLoadPlanner
