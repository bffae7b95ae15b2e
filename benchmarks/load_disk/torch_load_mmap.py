# SPDX-License-Identifier: Apache-2.0
"""torch.load with mmap=True, then a copy into the destination."""
import os

from driver import cache, states
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import torch
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.torch, self.versions = torch, {"torch": torch.__version__}
        self.path = os.path.join(self.directory, "in.pt")
        state = states.torch_tensors(self.params)
        torch.save(state, self.path)
        self.expected = states.tensor_digests(state)
        self.target = state  # allocated and touched; prepare() wipes it

    def prepare(self):
        self.torch.set_num_threads(self.threads)
        for t in self.target.values():
            t.fill_(1)
        cache.make(self.params["cache"], self.path)

    def run(self):
        loaded = self.torch.load(self.path, mmap=True)
        for name, tensor in self.target.items():
            tensor.copy_(loaded[name])

    def check(self):
        return states.tensor_digests(self.target) == self.expected
