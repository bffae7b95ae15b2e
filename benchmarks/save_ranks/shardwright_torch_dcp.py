# SPDX-License-Identifier: Apache-2.0
"""shardwright writing a directory that torch DCP reads: durable, checksums and digests on, commit included."""
import shardwright.torch
from save_ranks import shardwright as native


class Contender(native.Contender):
    def run(self):
        shardwright.torch.save(self.values, self.path, threads=self.threads, format="torch-dcp")
