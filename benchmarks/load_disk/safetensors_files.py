# SPDX-License-Identifier: Apache-2.0
"""What the contenders with safetensors share: one file, read by safe_open with the backend of the contender."""
import os
import threading

from driver import cache, states
from driver.contender import Base, Skip


class Safetensors(Base):
    backend = framework = ""

    def setup(self):
        try:
            import safetensors
            import safetensors.torch
            import torch
        except ImportError as e:
            raise Skip(f"safetensors or torch not importable: {e}") from e
        torch.set_num_threads(1)  # threads are those of run
        self.library, self.versions = safetensors, {"safetensors": safetensors.__version__, "torch": torch.__version__}
        self.path = os.path.join(self.directory, "in.safetensors")
        state = states.torch_tensors(self.params)
        safetensors.torch.save_file(state, self.path)
        self.expected = states.tensor_digests(state)
        self.target = state  # allocated and touched; prepare() wipes it

    def prepare(self):
        for t in self.target.values():
            t.fill_(1)
        cache.make(self.params["cache"], self.path)

    @staticmethod
    def put(target, loaded):
        raise NotImplementedError

    def load(self, names):
        with self.library.safe_open(self.path, framework=self.framework, backend=self.backend) as f:
            for name in names:
                self.put(self.target[name], f.get_tensor(name))

    def run(self):
        names = list(self.target)
        others = [threading.Thread(target=self.load, args=(names[i::self.threads],)) for i in range(1, self.threads)]
        for thread in others:
            thread.start()
        self.load(names[::self.threads])
        for thread in others:
            thread.join()

    def check(self):
        return states.tensor_digests(self.target) == self.expected
