# SPDX-License-Identifier: Apache-2.0
"""torch DCP on every rank, at its fastest: writer threads, plans kept from save to save, CRC-32 off. It fsyncs its files;
the coordinator syncs the directory here, as the last one, for all."""
import os
import shutil

from driver import cache
from driver.ranks import RanksContender


class Contender(RanksContender):
    def setup(self):
        super().setup()
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
        self.torch.serialization.set_crc32_options(False)
        self.dcp, self.planner_class = dcp, DefaultSavePlanner
        self.values = self.state("rows")
        self.path = os.path.join(self.directory, "out")

    def prepare(self):
        self.torch.set_num_threads(self.threads)
        if self.rank == 0:
            shutil.rmtree(self.path, ignore_errors=True)

    def run(self):
        writer = self.dcp.FileSystemWriter(self.path, thread_count=self.threads)
        self.dcp.save(self.values, storage_writer=writer, planner=self.planner_class(enable_plan_caching=True))
        if self.rank == 0:
            cache.sync_one(self.path)
            cache.sync_one(self.directory)

    def check(self):
        loaded = self.state("rows")
        self.wipe(loaded)
        self.dcp.load(loaded, checkpoint_id=self.path)
        return self.digests(loaded) == self.digests(self.values)
