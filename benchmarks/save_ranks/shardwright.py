# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.save on every rank: durable, digests on, commit included."""
import os
import shutil

import shardwright
import shardwright.torch
from driver.ranks import RanksContender


class Contender(RanksContender):
    def setup(self):
        super().setup()
        self.versions = self.versions | {"shardwright": shardwright.__version__}
        self.values = self.state("rows")
        self.path = os.path.join(self.directory, "out")

    def prepare(self):
        if self.rank == 0:
            shutil.rmtree(self.path, ignore_errors=True)

    def run(self):
        shardwright.torch.save(self.values, self.path, threads=self.threads)

    def check(self):
        loaded = self.state("rows")
        self.wipe(loaded)
        shardwright.torch.load(self.path, into=loaded)
        return self.digests(loaded) == self.digests(self.values)
