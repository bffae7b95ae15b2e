# SPDX-License-Identifier: Apache-2.0
"""create_local_plan of torch's DefaultLoadPlanner."""
from torch_reads import LoadPlan


class Contender(LoadPlan):
    def planner_class(self):
        from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
        return DefaultLoadPlanner
