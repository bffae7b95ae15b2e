# SPDX-License-Identifier: Apache-2.0
"""megatron-core loads what one of its ranks wants, and saves it; the directory is synced here."""
import os

from driver import cache, megatron, states
from megatron_reshard import contents
from megatron_reshard.in_one_process import InOneProcess


class Contender(InOneProcess):
    def take_package(self):
        package, self.kinds, _, versions = megatron.theirs(threads=True)
        return package, versions

    def source_tree(self, state):
        return contents.of_one(self.package, state)

    def setup(self):
        super().setup()
        self.state = contents.whole(self.params)

    def prepare(self):
        for tensor in self.state.values():
            tensor.fill_(1)
        super().prepare()
        os.makedirs(self.target)

    def run(self):
        self.package.load(contents.of_one(self.package, self.state), self.source)
        saver = self.kinds.TorchDistSaveShardedStrategy("torch_dist", 1, thread_count=self.threads)
        self.package.save(contents.of_one(self.package, self.state), self.target, saver)
        cache.sync_tree(self.target)

    def found(self):
        loaded = {name: tensor.new_ones(tensor.shape) for name, tensor in self.state.items()}
        self.package.load(contents.of_one(self.package, loaded), self.target)
        return states.tensor_digests(loaded)
