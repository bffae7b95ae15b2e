# SPDX-License-Identifier: Apache-2.0
"""What the contenders share: a state of their package's descriptors, a strategy per count of threads that stays, and tensors
that change as soon as a save in the background lets go."""
import os
import shutil
import time

from driver import megatron, memory
from driver.ranks import RanksContender


class RanksSave(RanksContender):
    first_s = None
    options = {}  # of each save

    def take_package(self):
        """Sets self.package, which has save, load and ShardedTensor, and self.queue; gives the versions."""
        raise NotImplementedError

    def strategy(self, threads):
        raise NotImplementedError

    def setup(self):
        super().setup()
        self.versions = self.versions | self.take_package()
        self.later = self.params["op"] == "save_async"
        self.values = self.locals_of(self.state("rows"))
        self.path = os.path.join(self.directory, "out")
        self.strategies, self.turn = {}, 0
        self.save_little()
        if self.later:
            memory.back_pages(2 * self.params["bytes"] // self.params["world"])

    def save_little(self):
        """What a first save imports is no part of it."""
        path = os.path.join(self.directory, "little")
        if self.rank == 0:
            os.makedirs(path)
        self.meet()
        self.package.save(self.described({"little": self.torch.ones(1)}), path, self.strategy(1))

    def described(self, tensors):
        return megatron.described(self.package.ShardedTensor, tensors, "rows", self.rank, self.world)

    def prepare(self):
        self.torch.set_num_threads(self.threads)
        self.turn += 1
        self.fill(self.turn)
        if self.rank == 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.makedirs(self.path)
        self.meet()

    def fill(self, value):
        for number, tensor in enumerate(self.values.values()):
            tensor.fill_(value * 1000 + number)

    def run(self):
        if self.threads not in self.strategies:
            self.strategies[self.threads] = self.strategy(self.threads)
        start = time.perf_counter()
        request = self.package.save(self.described(self.values), self.path, self.strategies[self.threads],
                                    async_sharded_save=self.later, **self.options)
        if self.later:
            self.queue.schedule_async_request(request)
        else:
            self.sync()
        if self.first_s is None:
            self.first_s = time.perf_counter() - start
        return {"first_s": self.first_s}

    def sync(self):
        """What makes a finished save durable, where the package does not."""

    def settle(self):
        self.fill(-1)
        if self.later:
            self.queue.maybe_finalize_async_calls(blocking=True)
        super().settle()

    def check(self):
        loaded = {name: self.torch.empty_like(tensor) for name, tensor in self.values.items()}
        self.package.load(self.described(loaded), self.path)
        return all(bool((tensor == self.turn * 1000 + number).all()) for number, tensor in enumerate(loaded.values()))
