# SPDX-License-Identifier: Apache-2.0
"""The index of shardwright.torch.dcp.planner: torch's dataclasses are made from the merged plan when it is pickled."""
import pickle

from shardwright_torch_buffers import sent_plan
from torch_objects import Index


class Contender(Index):
    def planner_class(self):
        from shardwright.torch.dcp.planner import DefaultSavePlanner
        return DefaultSavePlanner

    def given(self, items, paths):
        return pickle.loads(sent_plan(items, paths))
