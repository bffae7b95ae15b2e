# SPDX-License-Identifier: Apache-2.0
"""What is done without us: a file of torch.save is loaded (mmap) and written by safetensors, then synced."""
import os

from driver import cache, states
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import safetensors
            import safetensors.torch
            import torch
        except ImportError as e:
            raise Skip(f"torch or safetensors not importable: {e}") from e
        self.torch, self.library = torch, safetensors.torch
        self.versions = {"torch": torch.__version__, "safetensors": safetensors.__version__}
        state = states.torch_tensors(self.params)
        self.expected = states.tensor_digests(state)
        self.source = os.path.join(self.directory, "in.pt")
        torch.save(state, self.source)
        self.path = os.path.join(self.directory, "out.safetensors")

    def prepare(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        cache.make("cold", self.source)

    def run(self):
        self.library.save_file(self.torch.load(self.source, mmap=True), self.path)
        cache.sync_one(self.path)
        cache.sync_one(self.directory)

    def check(self):
        return states.tensor_digests(self.library.load_file(self.path)) == self.expected
