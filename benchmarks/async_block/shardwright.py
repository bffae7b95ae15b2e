# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.save_async until Job.wait_staged."""
import shardwright
import shardwright.torch
from async_block.ranks_save import RanksSave


class Contender(RanksSave):
    def setup(self):
        super().setup()
        self.versions = self.versions | {"shardwright": shardwright.__version__}

    def begin(self):
        self.job = shardwright.torch.save_async(self.values, self.path, threads=self.threads)
        self.job.wait_staged()

    def end(self):
        self.job.wait()
        self.job = None

    def load(self, target):
        shardwright.torch.load(self.path, into=target)
