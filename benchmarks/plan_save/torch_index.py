# SPDX-License-Identifier: Apache-2.0
"""The index of torch's DefaultSavePlanner: its dataclasses are there already."""
from torch_objects import Index


class Contender(Index):
    def planner_class(self):
        from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
        return DefaultSavePlanner
