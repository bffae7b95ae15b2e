# SPDX-License-Identifier: Apache-2.0
"""shardwright; each call is a process of its own, so that the peak is this call's."""
import json
import os
import shutil
import subprocess
import sys

import shardwright
from driver.contender import Base


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}

    def setup(self):
        self.added = 0  # the most of all rounds
        self.path = os.path.join(self.directory, "out")
        self.allowed = self.params["budget"] + self.params["bytes"] * 0.05
        if self.params["op"] == "load":
            self.call("save")

    def prepare(self):
        if self.params["op"] == "save":
            shutil.rmtree(self.path, ignore_errors=True)

    def call(self, op):
        # As a module: a program's own folder would come first, and a file in it is named like the package.
        command = [sys.executable, "-m", "peak_memory.one_call", op, self.path, json.dumps(self.params)]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)

    def run(self):
        seen = self.call(self.params["op"])
        self.added = max(self.added, seen["rss_peak_bytes"] - seen["resident_before_bytes"])
        return seen | {"added_bytes": self.added, "budget_bytes": self.params["budget"],
                       "allowed_bytes": int(self.allowed), "share_of_allowed": self.added / self.allowed}

    def check(self):
        return 0 <= self.added <= self.allowed
