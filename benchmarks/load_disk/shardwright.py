# SPDX-License-Identifier: Apache-2.0
"""shardwright: every digest verified, into numpy arrays in place."""
import os

import shardwright
from driver import cache, states
from driver.contender import Base


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}
    name = "in"

    def setup(self):
        self.path = os.path.join(self.directory, self.name)
        state = states.arrays(self.params)
        self.store(state)
        self.expected = states.digests(state)
        self.target = state  # allocated and touched; prepare() wipes it

    def store(self, state):
        shardwright.save(state, self.path)

    def prepare(self):
        for a in self.target.values():
            a.fill(1)
        cache.make(self.params["cache"], self.path)

    def run(self):
        shardwright.load(self.path, into=self.target, threads=self.threads)

    def check(self):
        return states.digests(self.target) == self.expected
