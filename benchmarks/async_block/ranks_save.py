# SPDX-License-Identifier: Apache-2.0
"""What the contenders share: once the caller is let go, its tensors change at once, so that a check finds bytes that were
not taken in time."""
import os
import shutil
import time

from driver import memory
from driver.ranks import RanksContender


class RanksSave(RanksContender):
    first_s = None

    def begin(self):
        """Starts a save and returns when the tensors may change."""
        raise NotImplementedError

    def end(self):
        """Returns when the save is durable."""
        raise NotImplementedError

    def load(self, target):
        raise NotImplementedError

    def setup(self):
        super().setup()
        self.values, self.turn = self.state("rows"), 0
        self.path = os.path.join(self.directory, "out")
        memory.back_pages(2 * self.params["bytes"] // self.params["world"])

    def prepare(self):
        self.torch.set_num_threads(self.threads)
        if self.rank == 0:
            shutil.rmtree(self.path, ignore_errors=True)
        self.turn += 1
        self.fill(self.turn)

    def fill(self, value):
        for number, tensor in enumerate(self.locals_of(self.values).values()):
            tensor.fill_(value * 1000 + number)

    def run(self):
        start = time.perf_counter()
        self.begin()
        if self.first_s is None:
            self.first_s = time.perf_counter() - start
        return {"first_s": self.first_s}

    def settle(self):
        self.fill(-1)
        self.end()
        super().settle()

    def check(self):
        loaded = self.state("rows")
        self.wipe(loaded)
        self.load(loaded)
        self.fill(self.turn)
        return self.digests(loaded) == self.digests(self.values)
