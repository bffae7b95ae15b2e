# SPDX-License-Identifier: Apache-2.0
"""What the contenders share: calls of torch.distributed.checkpoint under whichever name."""
import os
import shutil

from driver import cache, states
from driver.contender import Base, Skip


class DcpCalls(Base):
    def package(self):
        """The module that has `save` and `load`."""
        raise NotImplementedError

    def save_once(self):
        raise NotImplementedError

    def setup(self):
        try:
            import torch
            import torch.distributed.checkpoint as torch_dcp
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.torch, self.torch_dcp, self.versions = torch, torch_dcp, {"torch": torch.__version__}
        self.dcp = self.package()
        self.state = states.torch_tensors(self.params)
        self.expected = states.tensor_digests(self.state)
        self.path = os.path.join(self.directory, "checkpoint")
        if self.params["op"] == "load":
            writer = torch_dcp if self.params["writer"] == "torch" else self.dcp
            writer.save(self.state, checkpoint_id=self.path, no_dist=True)

    def prepare(self):
        self.torch.set_num_threads(self.threads)
        if self.params["op"] == "save":
            shutil.rmtree(self.path, ignore_errors=True)
            return
        for tensor in self.state.values():
            tensor.fill_(1)
        cache.make(self.params["cache"], self.path)

    def run(self):
        if self.params["op"] == "save":
            self.save_once()
        else:
            self.load_once()

    def load_once(self):
        raise NotImplementedError

    def check(self):
        if self.params["op"] == "load":
            return states.tensor_digests(self.state) == self.expected
        loaded = {name: self.torch.empty_like(tensor) for name, tensor in self.state.items()}
        self.torch_dcp.load(loaded, checkpoint_id=self.path, no_dist=True)  # torch reads what either wrote
        return states.tensor_digests(loaded) == self.expected
