# SPDX-License-Identifier: Apache-2.0
"""torch.save, then fsync of the file and its directory; its own CRC-32 switched off (its fastest setting)."""
import os

from driver import cache, states
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import torch
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        torch.set_num_threads(1)
        torch.serialization.set_crc32_options(False)
        self.torch, self.versions = torch, {"torch": torch.__version__}
        self.state = states.torch_tensors(self.params)
        self.path = os.path.join(self.directory, "out.pt")

    def prepare(self):
        if os.path.exists(self.path):
            os.unlink(self.path)

    def run(self):
        self.torch.save(self.state, self.path)
        cache.sync_one(self.path)
        cache.sync_one(self.directory)

    def check(self):
        return states.tensor_digests(self.torch.load(self.path)) == states.tensor_digests(self.state)
