# SPDX-License-Identifier: Apache-2.0
"""shardwright: durable, digests on, commit included."""
import os
import shutil

import shardwright
from driver import states
from driver.contender import Base


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}
    name = "out"
    format = "native"

    def setup(self):
        self.state = states.arrays(self.params)
        self.path = os.path.join(self.directory, self.name)

    def prepare(self):
        shutil.rmtree(self.path, ignore_errors=True)

    def run(self):
        shardwright.save(self.state, self.path, format=self.format, threads=self.threads)

    def check(self):
        loaded = shardwright.load(self.path)
        return states.digests({k: v.numpy() for k, v in loaded.items()}) == states.digests(self.state)
