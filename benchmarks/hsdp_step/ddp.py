# SPDX-License-Identifier: Apache-2.0
"""torch's DistributedDataParallel: nothing is sharded, so it holds all parameters, gradients and momenta on every rank."""
from hsdp_step.training import Training


class Contender(Training):
    def shard(self, model):
        from torch.nn.parallel import DistributedDataParallel
        return DistributedDataParallel(model)

    def whole(self, param):
        return param
