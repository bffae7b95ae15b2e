# SPDX-License-Identifier: Apache-2.0
"""The step between the collectives of a save with torch's DefaultSavePlanner."""
from torch_objects import SentStep


class Contender(SentStep):
    def planner_class(self):
        from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
        return DefaultSavePlanner
