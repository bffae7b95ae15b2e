# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.megatron of what it saved itself: every digest is verified."""
import os

from driver import megatron
from load_ranks.ranks_load import RanksLoad


class Contender(RanksLoad):
    def setup(self):
        self.package, own = megatron.ours()
        super().setup()
        self.versions = self.versions | own

    def save(self, state):
        if self.rank == 0:
            os.makedirs(self.path, exist_ok=True)
        self.meet()
        package = self.saver()
        tensors = self.locals_of(state)
        package.save(megatron.described(package.ShardedTensor, tensors, "rows", self.rank, self.world), self.path)

    def saver(self):
        return self.package

    def load(self, target):
        tensors, layout = self.locals_of(target), self.params["layout"]
        self.package.load(megatron.described(self.package.ShardedTensor, tensors, layout, self.rank, self.world), self.path)
