# SPDX-License-Identifier: Apache-2.0
"""shardwright reading the directory that torch DCP wrote, which has no digests."""
from load_ranks import shardwright as native


class Contender(native.Contender):
    def save(self, state):
        import torch.distributed.checkpoint as dcp
        dcp.save(state, checkpoint_id=self.path)
