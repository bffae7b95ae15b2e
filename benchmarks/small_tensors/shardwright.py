# SPDX-License-Identifier: Apache-2.0
"""shardwright from a dict of torch tensors, where torch is installed; from numpy arrays otherwise."""
import os
import shutil

import shardwright
from driver import states
from driver.contender import Base


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}

    def setup(self):
        self.arrays = states.arrays(self.params)
        try:
            self.state = states.torch_tensors(self.params)
        except ImportError:
            self.state = self.arrays
        self.path = os.path.join(self.directory, "out")

    def prepare(self):
        shutil.rmtree(self.path, ignore_errors=True)

    def run(self):
        shardwright.save(self.state, self.path, threads=self.threads)

    def check(self):
        loaded = shardwright.load(self.path)
        return states.digests({k: v.numpy() for k, v in loaded.items()}) == states.digests(self.arrays)
