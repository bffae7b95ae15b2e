# SPDX-License-Identifier: Apache-2.0
"""What the contenders share: the memory of an operation, and what it must hold afterwards."""
from driver.ranks import RanksContender


class Operation(RanksContender):
    def gather(self, part, whole):
        raise NotImplementedError

    def reduce(self, whole, part):
        raise NotImplementedError

    def setup(self):
        super().setup()
        torch = self.torch
        self.count = self.params["bytes"] // 4
        self.whole = torch.empty(self.count)
        self.part = torch.empty(self.count // self.world)

    def of_rank(self, rank):
        return self.torch.randn(self.count, generator=self.torch.Generator().manual_seed(rank))

    def place(self, whole, rank):
        return whole[rank * (self.count // self.world):][:self.count // self.world]

    def prepare(self):
        self.torch.set_num_threads(1)
        if self.params["op"] == "gather":
            self.part.copy_(self.place(self.of_rank(0), self.rank))
            self.whole.fill_(-1)
        else:
            self.whole.copy_(self.of_rank(self.rank))
            self.part.fill_(-1)

    def run(self):
        if self.params["op"] == "gather":
            self.gather(self.part, self.whole)
        else:
            self.reduce(self.whole, self.part)

    def check(self):
        if self.params["op"] == "gather":
            return self.torch.equal(self.whole, self.of_rank(0))
        total = self.of_rank(0)
        for rank in range(1, self.world):
            total += self.of_rank(rank)
        return self.torch.allclose(self.part, self.place(total / self.world, self.rank), rtol=1e-5, atol=1e-6)
