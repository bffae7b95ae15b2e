# SPDX-License-Identifier: Apache-2.0
"""shardwright.convert."""
import os
import shutil

import shardwright
from driver import cache, states
from driver.contender import Base


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}

    def setup(self):
        state = states.arrays(self.params)
        self.expected = states.digests(state)
        self.target = self.params["target"]
        self.source = os.path.join(self.directory, "in")
        source_format = "native" if self.target == "safetensors" else "safetensors"
        shardwright.save(state, self.source, format=source_format)
        self.path = os.path.join(self.directory, "out")

    def prepare(self):
        shutil.rmtree(self.path, ignore_errors=True)
        cache.make("cold", self.source)

    def run(self):
        shardwright.convert(self.source, self.path, format=self.target, compare=self.params["compare"], threads=self.threads)

    def check(self):
        loaded = shardwright.load(self.path)
        return states.digests({k: v.numpy() for k, v in loaded.items()}) == self.expected
