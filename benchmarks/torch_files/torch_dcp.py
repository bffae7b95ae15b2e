# SPDX-License-Identifier: Apache-2.0
"""torch DCP at its fastest: writer threads, plans kept from save to save, CRC-32 off. It fsyncs its files; directories are
synced here."""
from driver import cache
from torch_files.dcp_calls import DcpCalls


class Contender(DcpCalls):
    def package(self):
        self.torch.serialization.set_crc32_options(False)
        return self.torch_dcp

    def save_once(self):
        from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
        writer = self.dcp.FileSystemWriter(self.path, thread_count=self.threads)
        self.dcp.save(self.state, storage_writer=writer, planner=DefaultSavePlanner(enable_plan_caching=True), no_dist=True)
        cache.sync_one(self.path)
        cache.sync_one(self.directory)

    def load_once(self):
        self.dcp.load(self.state, checkpoint_id=self.path, no_dist=True)
