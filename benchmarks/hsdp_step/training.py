# SPDX-License-Identifier: Apache-2.0
"""What the contenders share: the model, its micro-batches, a step, and one process to compare with."""
import itertools

from driver import memory
from driver.ranks import RanksContender

CHECKED_STEPS = 3
LEARNING_RATE = 1e-3
CLOSE = 1e-5  # of what another order of additions may differ by


class Training(RanksContender):
    is_exact = False  # whether the sums are made in rank order

    def shard(self, model):
        """The model as units."""
        raise NotImplementedError

    def whole(self, param):
        """All of a parameter, on every rank."""
        return param.full_tensor()

    def make_model(self):
        torch, nn = self.torch, self.torch.nn
        width, hidden = self.params["width"], self.params["hidden"]
        torch.manual_seed(7)
        blocks = [nn.Sequential(nn.Linear(width, hidden, bias=False), nn.ReLU(), nn.Linear(hidden, width, bias=False))
                  for _ in range(self.params["blocks"])]
        return nn.Sequential(*blocks)

    def batch(self, step, rank):
        generator = self.torch.Generator().manual_seed(1000 * step + rank)
        return self.torch.randn(self.params["tokens"], self.params["width"], generator=generator)

    def setup(self):
        super().setup()
        shape = self.params["shape"]
        names = ("replicate", "shard")[-len(shape):]
        self.mesh = self.dist.device_mesh.init_device_mesh("cpu", tuple(shape), mesh_dim_names=names)
        self.model = self.shard(self.make_model())
        self.optimizer = self.torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE, momentum=0.9)
        self.inputs = self.batch(CHECKED_STEPS, self.rank)
        self.equal_bits = None

    def prepare(self):
        self.torch.set_num_threads(self.threads)
        if self.equal_bits is None:
            self.compare()
            memory.return_freed()
        memory.forget_peak()

    def train(self, inputs):
        loss = self.model(inputs).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def run(self):
        self.train(self.inputs)
        return {"equal_bits": self.equal_bits, "step_peak_bytes": memory.peak_bytes()}

    def compare(self):
        """The first steps of the model, on rank 0 against one process."""
        for step in range(CHECKED_STEPS):
            self.train(self.batch(step, self.rank))
        expected = self.expected_parameters() if self.rank == 0 else itertools.repeat(None)
        equal, count, self.close = 0, 0, True
        for param, right in zip(self.model.parameters(), expected, strict=False):
            found = self.whole(param).detach()
            if right is not None:
                equal, count = equal + int((found == right).sum()), count + right.numel()
                self.close &= self.torch.allclose(found, right, rtol=CLOSE, atol=CLOSE * float(right.abs().max()))
        self.equal_bits = equal / count if count else 0

    def expected_parameters(self):
        torch, shape = self.torch, self.params["shape"]
        replicas, shards = shape if len(shape) == 2 else (1, shape[0])
        model = self.make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)
        params = list(model.parameters())
        for step in range(CHECKED_STEPS):
            total = None
            for replica in range(replicas):
                of_shards = None
                for shard in range(shards):
                    loss = model(self.batch(step, replica * shards + shard)).square().mean()
                    of_shards = add(of_shards, torch.autograd.grad(loss, params))
                total = add(total, of_shards)
            for param, grad in zip(params, total, strict=True):
                param.grad = grad * (1.0 / (replicas * shards))
            optimizer.step()
        return [each.detach() for each in params]

    def check(self):
        return self.close and (self.rank > 0 or self.equal_bits == 1 or not self.is_exact)


def add(left, right):
    return list(right) if left is None else [a + b for a, b in zip(left, right, strict=True)]
