# SPDX-License-Identifier: Apache-2.0
"""What the contenders share: a process that is the only rank of its group, and bytes that are checked in the target."""
import os
import shutil

from driver import cache, states
from driver.contender import Base, Skip
from megatron_reshard import contents


class InOneProcess(Base):
    def take_package(self):
        """The package that saves the source and its versions."""
        raise NotImplementedError

    def source_tree(self, state):
        raise NotImplementedError

    def setup(self):
        try:
            import torch.distributed as dist
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        self.package, self.versions = self.take_package()
        self.source, self.target = os.path.join(self.directory, "in"), os.path.join(self.directory, "out")
        os.makedirs(self.source)
        state = contents.whole(self.params)
        self.expected = states.tensor_digests(state)
        self.package.save(self.source_tree(state), self.source)

    def prepare(self):
        shutil.rmtree(self.target, ignore_errors=True)
        cache.make("cold", self.source)

    def found(self):
        """Digests of what the target holds, by the names of a state of one rank."""
        raise NotImplementedError

    def check(self):
        return self.found() == self.expected
