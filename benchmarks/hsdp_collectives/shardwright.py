# SPDX-License-Identifier: Apache-2.0
"""The communicator that fully_shard takes: ranks of one machine meet in its memory. Sums are made in rank order."""
import shardwright
from hsdp_collectives.operation import Operation


class Contender(Operation):
    def setup(self):
        super().setup()
        from shardwright.torch._choice import communicator_over
        self.versions = self.versions | {"shardwright": shardwright.__version__}
        self.communicator = communicator_over(self.dist.group.WORLD, "hsdp", None)

    def gather(self, part, whole):
        self.communicator.all_gather(part.numpy(), whole.numpy()).wait()

    def reduce(self, whole, part):
        self.communicator.reduce_scatter(whole.numpy(), part.numpy(), op="average").wait()
