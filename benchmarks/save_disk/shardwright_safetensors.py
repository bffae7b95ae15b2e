# SPDX-License-Identifier: Apache-2.0
"""shardwright writing one safetensors file: durable, commit included; the format has no digests."""
import os

import shardwright
from driver import states
from driver.contender import Base


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}

    def setup(self):
        self.state = states.arrays(self.params)
        self.path = os.path.join(self.directory, "out.safetensors")

    def prepare(self):
        if os.path.exists(self.path):
            os.unlink(self.path)

    def run(self):
        shardwright.save(self.state, self.path, format="safetensors", threads=self.threads)

    def check(self):
        loaded = shardwright.load(self.path)
        return states.digests({k: v.numpy() for k, v in loaded.items()}) == states.digests(self.state)
