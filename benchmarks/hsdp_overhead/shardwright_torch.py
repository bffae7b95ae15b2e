# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.fully_shard, its communicators replaced by one that moves nothing as that of torch does."""
import shardwright
from hsdp_overhead.modules import Modules


class Contender(Modules):
    def setup(self):
        from shardwright.hsdp import fake_communicator
        from shardwright.torch.hsdp import _placement
        _placement.ContextMesh._over = lambda *_: fake_communicator(0, 2)
        super().setup()
        self.versions = self.versions | {"shardwright": shardwright.__version__}

    def shard(self, module):
        from shardwright.torch import fully_shard
        fully_shard(module, mesh=self.mesh)
