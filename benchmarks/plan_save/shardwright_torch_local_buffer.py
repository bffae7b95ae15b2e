# SPDX-License-Identifier: Apache-2.0
"""create_local_plan of shardwright.torch.dcp.planner as a plan buffer."""
from torch_local_plan import Contender as Base


class Contender(Base):
    items = False

    def planner_class(self):
        from shardwright.torch.dcp.planner import DefaultSavePlanner
        return DefaultSavePlanner
