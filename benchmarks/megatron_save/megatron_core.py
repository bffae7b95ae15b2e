# SPDX-License-Identifier: Apache-2.0
"""megatron-core with the plans of the save before. It syncs its data files; the rest is synced here, by rank 0 for all. A save
in the background is a process that it forks, which shares its memory with the caller until that changes."""
from driver import cache, megatron
from megatron_save.ranks_save import RanksSave


class Contender(RanksSave):
    def take_package(self):
        threads = self.params["op"] == "save"  # what is forked has to see the tensors as they were
        self.package, self.kinds, queues, versions = megatron.theirs(threads)
        self.queue = queues.AsyncCallsQueue()
        return versions

    def strategy(self, threads):
        return self.kinds.TorchDistSaveShardedStrategy("torch_dist", 1, thread_count=threads, cached_metadata=True)

    def sync(self):
        if self.rank == 0:
            cache.sync_tree(self.path)
