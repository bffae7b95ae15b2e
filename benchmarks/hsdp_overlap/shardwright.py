# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.fully_shard."""
from hsdp_overlap.behind_a_link import BehindALink
from hsdp_step.shardwright import Contender as Step


class Contender(BehindALink, Step):
    def slow_down(self, model):
        from shardwright.hsdp import delayed
        from shardwright.torch.hsdp import _placement
        fast = _placement.ContextMesh._over
        _placement.ContextMesh._over = lambda *arguments: delayed(fast(*arguments), 0.0, self.params["link"])
        model(self.inputs).mean().backward()  # connects
        model.zero_grad()
        _placement.ContextMesh._over = fast
