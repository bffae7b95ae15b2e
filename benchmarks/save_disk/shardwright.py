# SPDX-License-Identifier: Apache-2.0
"""shardwright: durable, digests on, commit included."""
import os
import shutil

import shardwright
from driver import states
from driver.contender import Base


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}

    def setup(self):
        self.state = states.arrays(self.params)
        self.path = os.path.join(self.directory, "out")

    def prepare(self):
        shutil.rmtree(self.path, ignore_errors=True)

    def run(self):
        shardwright.save(self.state, self.path, threads=self.threads)

    def check(self):
        loaded = shardwright.load(self.path)
        return states.digests({k: v.numpy() for k, v in loaded.items()}) == states.digests(self.state)
