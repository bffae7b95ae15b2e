# SPDX-License-Identifier: Apache-2.0
"""torch DCP, one process (no_dist), in place. Its reader has no threads of its own; torch copies with as many as it may."""
import os

from driver import cache, states
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import torch
            import torch.distributed.checkpoint as dcp
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.torch, self.dcp, self.versions = torch, dcp, {"torch": torch.__version__}
        self.path = os.path.join(self.directory, "in")
        state = states.torch_tensors(self.params)
        dcp.save(state, checkpoint_id=self.path, no_dist=True)
        self.expected = states.tensor_digests(state)
        self.target = state  # allocated and touched; prepare() wipes it

    def prepare(self):
        self.torch.set_num_threads(self.threads)
        for t in self.target.values():
            t.fill_(1)
        cache.make(self.params["cache"], self.path)

    def run(self):
        self.dcp.load(self.target, checkpoint_id=self.path, no_dist=True)

    def check(self):
        return states.tensor_digests(self.target) == self.expected
