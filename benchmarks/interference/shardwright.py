# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.save_async; the tensors change after Job.wait_staged, which the first step that changes them asks."""
import shardwright
import shardwright.torch
from interference.training import Training


class Contender(Training):
    options = {}

    def setup(self):
        super().setup()
        self.versions = self.versions | {"shardwright": shardwright.__version__}
        shardwright.torch.prepare(self.values)

    def begin(self):
        self.job = shardwright.torch.save_async(self.values, self.path, threads=self.threads, **self.options)

    def fence(self):
        self.job.wait_staged()

    def ended(self):
        return self.job.done()

    def end(self):
        self.job.wait()
        self.job = None

    def load(self, target):
        shardwright.torch.load(self.path, into=target)
