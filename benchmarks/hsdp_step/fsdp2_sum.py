# SPDX-License-Identifier: Apache-2.0
"""The same with sums that are divided afterwards, which Gloo does without a division of its own."""
from hsdp_step.fsdp2 import Contender as Base


class Contender(Base):
    def shard(self, model):
        sharded = super().shard(model)
        for module in sharded.modules():
            if hasattr(module, "set_force_sum_reduction_for_comms"):
                module.set_force_sum_reduction_for_comms(True)
        return sharded
