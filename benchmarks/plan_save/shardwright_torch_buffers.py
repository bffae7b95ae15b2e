# SPDX-License-Identifier: Apache-2.0
"""The global step of shardwright.torch.planner on plan buffers, as they arrive inside torch's own save."""
from torch_objects import GlobalStep


class Contender(GlobalStep):
    def planner_class(self):
        from shardwright.torch.planner import DefaultSavePlanner
        return DefaultSavePlanner

    def given(self, items):
        from shardwright.torch.planner import PlanItems
        from shardwright.torch.planner._items import plan_of_items
        return PlanItems(plan_of_items(items))
