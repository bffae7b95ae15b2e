# SPDX-License-Identifier: Apache-2.0
"""Contenders of several ranks that save in the background. A turn fills the tensors with values of its own, so that a check
finds bytes that were taken too early or too late."""
import os
import shutil

from driver.ranks import RanksContender


class BackgroundSave(RanksContender):
    def begin(self):
        """Starts a save."""
        raise NotImplementedError

    def end(self):
        """Returns when the save is durable; raises what it failed with."""
        raise NotImplementedError

    def load(self, target):
        raise NotImplementedError

    def setup(self):
        super().setup()
        self.values, self.turn = self.state("rows"), 0
        self.path = os.path.join(self.directory, "out")

    def prepare(self):
        if self.rank == 0:
            shutil.rmtree(self.path, ignore_errors=True)
        self.turn += 1
        self.fill(self.turn)

    def fill(self, value):
        for number, tensor in enumerate(self.locals_of(self.values).values()):
            tensor.fill_(value * 1000 + number)

    def settle(self):
        self.end()
        super().settle()

    def check(self):
        loaded = self.state("rows")
        self.wipe(loaded)
        self.load(loaded)
        self.fill(self.turn)
        return self.digests(loaded) == self.digests(self.values)
