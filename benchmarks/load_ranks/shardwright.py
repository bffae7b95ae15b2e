# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.load on every rank, every digest verified."""
import shardwright
import shardwright.torch
from load_ranks.ranks_load import RanksLoad


class Contender(RanksLoad):
    def setup(self):
        super().setup()
        self.versions = self.versions | {"shardwright": shardwright.__version__}

    def save(self, state):
        shardwright.torch.save(state, self.path)

    def load(self, target):
        shardwright.torch.load(self.path, into=target, threads=self.threads)
