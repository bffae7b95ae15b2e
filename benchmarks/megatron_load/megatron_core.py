# SPDX-License-Identifier: Apache-2.0
"""megatron-core of what it saved itself. Its reader has no threads of its own; torch copies with as many as it may."""
from driver import megatron
from megatron_load import shardwright


class Contender(shardwright.Contender):
    def setup(self):
        self.package, _, _, versions = megatron.theirs(threads=True)
        super(shardwright.Contender, self).setup()
        self.versions = self.versions | versions
