# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.megatron of what megatron-core saved, which has no digests: its checksums are verified."""
from driver import megatron
from megatron_load import shardwright


class Contender(shardwright.Contender):
    def saver(self):
        package, _, _, versions = megatron.theirs(threads=True)
        self.versions = self.versions | versions
        return package
