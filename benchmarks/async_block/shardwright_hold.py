# SPDX-License-Identifier: Apache-2.0
"""The same with hold: nothing is copied. Timed is the call alone, as a trainer has it back; what changes the tensors waits."""
import shardwright.torch
from async_block.shardwright import Contender as Base


class Contender(Base):
    def begin(self):
        self.job = shardwright.torch.save_async(self.values, self.path, threads=self.threads, hold=True)

    def settle(self):
        self.job.wait_staged()
        super().settle()
