# SPDX-License-Identifier: Apache-2.0
"""The global step of shardwright.torch.dcp.planner on plans as they arrive inside torch's own save: nobody has looked into
them, so items are plan buffers and paths are bytes. What comes out is in the same state."""
import pickle

from torch_objects import GlobalStep


class Contender(GlobalStep):
    def planner_class(self):
        from shardwright.torch.dcp.planner import DefaultSavePlanner
        return DefaultSavePlanner

    def given(self, items, paths):
        return pickle.loads(sent_plan(items, paths))


def sent_plan(items, paths):
    """What a rank sends: its plan before anybody has looked into it."""
    from shardwright.torch.dcp.planner import PlanItems
    from shardwright.torch.dcp.planner._items import described
    from shardwright.torch.dcp.planner._paths import Paths
    from torch.distributed.checkpoint.planner import SavePlan
    return pickle.dumps(SavePlan(PlanItems(described(items).plan), planner_data=Paths(paths)))
