# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.dcp: durable, checksums and digests on, commit included; loads verify what there is."""
import shardwright
from torch_files.dcp_calls import DcpCalls


class Contender(DcpCalls):
    def package(self):
        import shardwright.torch.dcp
        self.versions = self.versions | {"shardwright": shardwright.__version__}
        return shardwright.torch.dcp

    def save_once(self):
        self.dcp.save(self.state, checkpoint_id=self.path, no_dist=True, threads=self.threads)

    def load_once(self):
        self.dcp.load(self.state, checkpoint_id=self.path, no_dist=True, threads=self.threads)
