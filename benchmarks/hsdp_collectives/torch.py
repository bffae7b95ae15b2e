# SPDX-License-Identifier: Apache-2.0
"""What FSDP2 calls."""
from hsdp_collectives.operation import Operation


class Contender(Operation):
    def gather(self, part, whole):
        self.dist.all_gather_into_tensor(whole, part)

    def reduce(self, whole, part):
        self.dist.reduce_scatter_tensor(part, whole, op=self.dist.ReduceOp.AVG)
