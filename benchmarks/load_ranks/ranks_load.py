# SPDX-License-Identifier: Apache-2.0
"""What the contenders share: the state is saved in rows, then loaded in the layout of the variant."""
import os

from driver import cache
from driver.ranks import RanksContender


class RanksLoad(RanksContender):
    def save(self, state):
        raise NotImplementedError

    def load(self, target):
        raise NotImplementedError

    def setup(self):
        super().setup()
        self.path = os.path.join(self.directory, "in")
        self.save(self.state("rows"))
        self.target = self.state(self.params["layout"])  # allocated and touched; prepare() wipes it
        self.expected = self.digests(self.target)
        self.needed = self.bytes_needed(self.target)

    def prepare(self):
        self.torch.set_num_threads(self.threads)
        self.wipe(self.target)
        self.meet()
        if self.rank == 0:
            cache.make(self.params["cache"], self.path)

    def run(self):
        self.load(self.target)
        return {"bytes_needed": self.needed}

    def check(self):
        return self.digests(self.target) == self.expected
