# SPDX-License-Identifier: Apache-2.0
"""What the contenders of torch share: a chain of modules of one parameter each, beside the same chain without units, over a
process group that moves nothing."""
import time

from driver.contender import Base, Skip


class Modules(Base):
    def setup(self):
        try:
            import torch
            import torch.distributed as dist
            from torch.testing._internal.distributed.fake_pg import FakeStore
        except ImportError as e:
            raise Skip(f"torch or its process group that moves nothing not importable: {e}") from e
        torch.set_num_threads(1)
        self.torch, self.versions = torch, {"torch": torch.__version__}
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
        self.mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
        self.plain, self.model = self.chain(), self.chain()
        for block in self.model:
            self.shard(block)
        self.shard(self.model)
        self.inputs = torch.ones(2, requires_grad=True)

    def shard(self, module):
        raise NotImplementedError

    def chain(self):
        nn, torch = self.torch.nn, self.torch

        class Scale(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(2))

            def forward(self, x):
                return x * self.weight

        return nn.Sequential(*(Scale() for _ in range(self.params["units"])))

    def seconds(self, model):
        start = time.perf_counter()
        model(self.inputs).sum().backward()
        seconds = time.perf_counter() - start
        self.has_all = all(each.grad is not None for each in model.parameters())
        model.zero_grad()
        return seconds

    def run(self):
        plain = self.seconds(self.plain)
        return {"us_per_phase": (self.seconds(self.model) - plain) * 1e6 / (4 * self.params["units"])}

    def check(self):
        return self.has_all
