# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint's reader: the index as torch's objects, of the same directory."""
from driver.contender import Base, Skip
from open_index import made


class Contender(Base):
    def setup(self):
        try:
            import torch
            import torch.distributed.checkpoint as dcp
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.torch, self.dcp, self.versions = torch, dcp, {"torch": torch.__version__}
        self.path, self.name, self.values = made.make(self.directory, self.params)

    def run(self):
        self.metadata = self.dcp.FileSystemReader(self.path).read_metadata()

    def check(self):
        target = {self.name: self.torch.zeros(self.values.shape)}
        self.dcp.load(target, checkpoint_id=self.path, no_dist=True)
        return bool((target[self.name].numpy() == self.values).all())
