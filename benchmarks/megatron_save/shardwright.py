# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.megatron: durable, checksums and digests on, commit included."""
from driver import megatron
from megatron_save.ranks_save import RanksSave


class Contender(RanksSave):
    def take_package(self):
        self.package, versions = megatron.ours()
        self.queue = self.package.AsyncCallsQueue()
        return versions

    def strategy(self, threads):
        return self.package.TorchDistSaveShardedStrategy(thread_count=threads)
