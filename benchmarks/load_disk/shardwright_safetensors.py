# SPDX-License-Identifier: Apache-2.0
"""shardwright reading the file of the safetensors package, into numpy arrays in place."""
import os

import shardwright
from driver import cache, states
from driver.contender import Base, Skip


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}

    def setup(self):
        try:
            import safetensors.numpy
        except ImportError as e:
            raise Skip(f"safetensors not importable: {e}") from e
        self.path = os.path.join(self.directory, "in.safetensors")
        state = states.arrays(self.params)
        safetensors.numpy.save_file(state, self.path)
        self.expected = states.digests(state)
        self.target = state  # allocated and touched; prepare() wipes it

    def prepare(self):
        for a in self.target.values():
            a.fill(1)
        cache.make(self.params["cache"], self.path)

    def run(self):
        shardwright.load(self.path, into=self.target, threads=self.threads)

    def check(self):
        return states.digests(self.target) == self.expected
