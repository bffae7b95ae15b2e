# SPDX-License-Identifier: Apache-2.0
"""torch's fully_shard."""
from hsdp_overhead.modules import Modules


class Contender(Modules):
    def shard(self, module):
        from torch.distributed.fsdp import fully_shard
        fully_shard(module, mesh=self.mesh)
