# SPDX-License-Identifier: Apache-2.0
"""torch DCP, one process (no_dist), at its fastest: writer threads, plans kept from save to save, CRC-32 off. It fsyncs its
files, the directory is synced here."""
import os
import shutil

from driver import cache, states
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import torch
            import torch.distributed.checkpoint as dcp
            from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        torch.serialization.set_crc32_options(False)
        self.planner_class = DefaultSavePlanner
        self.torch, self.dcp, self.versions = torch, dcp, {"torch": torch.__version__}
        self.state = states.torch_tensors(self.params)
        self.path = os.path.join(self.directory, "out")

    def prepare(self):
        self.torch.set_num_threads(self.threads)
        shutil.rmtree(self.path, ignore_errors=True)

    def run(self):
        writer = self.dcp.FileSystemWriter(self.path, thread_count=self.threads)
        planner = self.planner_class(enable_plan_caching=True)
        self.dcp.save(self.state, storage_writer=writer, planner=planner, no_dist=True)
        cache.sync_one(self.path)
        cache.sync_one(self.directory)

    def check(self):
        loaded = {k: self.torch.empty_like(v) for k, v in self.state.items()}
        self.dcp.load(loaded, checkpoint_id=self.path, no_dist=True)
        return states.tensor_digests(loaded) == states.tensor_digests(self.state)
