# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.fully_shard, a unit per block."""
import shardwright
from hsdp_step.training import Training


class Contender(Training):
    is_exact = True

    def setup(self):
        super().setup()
        self.versions = self.versions | {"shardwright": shardwright.__version__}

    def shard(self, model):
        from shardwright.torch import fully_shard
        for block in model:
            fully_shard(block, mesh=self.mesh)
        return fully_shard(model, mesh=self.mesh)
