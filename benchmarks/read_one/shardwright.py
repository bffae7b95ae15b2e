# SPDX-License-Identifier: Apache-2.0
"""shardwright with an open checkpoint; every read checks its digest. The first read of all brings the index of the file."""
import os

import reads
import shardwright
from driver.contender import Base


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}

    def setup(self):
        path = os.path.join(self.directory, "out")
        shardwright.save(reads.state(self.params), path)
        self.checkpoint = shardwright.open(path)
        self.numbers = reads.chosen(self.params)
        self.names = [reads.name(number) for number in self.numbers]

    def run(self):
        for name in self.names:
            self.checkpoint.tensor(name).read()

    def check(self):
        return reads.right(self.numbers[:100], lambda name: self.checkpoint.tensor(name).read().numpy())
