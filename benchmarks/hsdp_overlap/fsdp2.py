# SPDX-License-Identifier: Apache-2.0
"""torch's fully_shard. On a CPU it issues its collectives blocking, so that a sleep in them is what a slow link does."""
import time

from hsdp_overlap.behind_a_link import BehindALink
from hsdp_step.fsdp2 import Contender as Step


class Contender(BehindALink, Step):
    def slow_down(self, model):
        from torch.distributed.fsdp._fully_shard._fsdp_collectives import DefaultAllGather, DefaultReduceScatter
        link, ranks = self.params["link"], self.world

        def arrive(whole, start):
            rest = whole.nbytes * (ranks - 1) / ranks / link - (time.perf_counter() - start)
            time.sleep(max(0.0, rest))

        class Gather(DefaultAllGather):
            def __call__(self, output_tensor, input_tensor, group, async_op=False):
                start = time.perf_counter()
                work = super().__call__(output_tensor, input_tensor, group, async_op)
                arrive(output_tensor, start)
                return work

        class Scatter(DefaultReduceScatter):
            def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
                start = time.perf_counter()
                work = super().__call__(output_tensor, input_tensor, group, op, async_op)
                arrive(input_tensor, start)
                return work

        for module in model.modules():
            if hasattr(module, "set_custom_all_gather"):
                module.set_custom_all_gather(Gather())
                module.set_custom_reduce_scatter(Scatter())
