# SPDX-License-Identifier: Apache-2.0
"""torch DCP on every rank. Its reader has no threads of its own; torch copies with as many as it may."""
from load_ranks.ranks_load import RanksLoad


class Contender(RanksLoad):
    def save(self, state):
        import torch.distributed.checkpoint as dcp
        self.dcp = dcp
        dcp.save(state, checkpoint_id=self.path)

    def load(self, target):
        self.dcp.load(target, checkpoint_id=self.path)
