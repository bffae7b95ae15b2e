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

    def described(self, state, layout):
        return megatron.described(self.package.ShardedTensor, self.locals_of(state), layout, self.rank, self.world)

    def save(self, state):
        if self.rank == 0:
            os.makedirs(self.path, exist_ok=True)
        self.meet()
        self.save_rows(self.described(state, "rows"))

    def save_rows(self, described):
        self.package.save(described, self.path)

    def load(self, target):
        self.package.load(self.described(target, self.params["layout"]), self.path)
