# SPDX-License-Identifier: Apache-2.0
"""The step between the collectives of a save with the planner of shardwright.torch.dcp.planner."""
from shardwright_torch_buffers import sent_plan
from torch_objects import SentStep


class Contender(SentStep):
    def planner_class(self):
        from shardwright.torch.dcp.planner import DefaultSavePlanner
        return DefaultSavePlanner

    def given(self, items, paths):
        return sent_plan(items, paths)
