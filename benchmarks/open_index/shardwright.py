# SPDX-License-Identifier: Apache-2.0
"""shardwright.open. `first`: the times of the index are touched before, so nothing that was opened before is of use."""
import os

import numpy
import shardwright
from driver.contender import Base
from open_index import made


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}

    def setup(self):
        self.path, self.name, self.values = made.make(self.directory, self.params)
        shardwright.open(self.path).close()

    def prepare(self):
        self.checkpoint = None
        if self.params["opening"] == "first":
            os.utime(os.path.join(self.path, ".metadata"))

    def run(self):
        self.checkpoint = shardwright.open(self.path)

    def check(self):
        return numpy.array_equal(self.checkpoint.tensor(self.name).read().numpy(), self.values)
