# SPDX-License-Identifier: Apache-2.0
"""torch DCP's async_save as it is called: each call has a stager of its own."""
from async_block.ranks_save import RanksSave


class Contender(RanksSave):
    stager = None

    def setup(self):
        super().setup()
        import torch.distributed.checkpoint as dcp
        self.dcp = dcp

    def begin(self):
        self.future = self.dcp.async_save(self.values, checkpoint_id=self.path, async_stager=self.stager)

    def end(self):
        self.future.result()
        self.future = None

    def load(self, target):
        self.dcp.load(target, checkpoint_id=self.path)
