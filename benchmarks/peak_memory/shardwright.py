# SPDX-License-Identifier: Apache-2.0
"""shardwright with its default memory budget; each run is a process of its own, so that the peak is this call's."""
import os
import shutil
import subprocess
import sys

from driver.contender import Base

BUDGET_BYTES = 256 << 20
PROGRAM = """
import resource, sys
sys.path[:0] = sys.argv[4].split(":")
import shardwright
from driver import states
op, path, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
state = states.arrays({"bytes": size, "tensors": 100})
def peak():
    with open("/proc/self/status") as f:
        fields = dict(line.split(":", 1) for line in f)
    return int(fields["VmHWM"].split()[0]) * 1024
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")
before = peak()
shardwright.save(state, path) if op == "save" else shardwright.load(path, into=state)
print(before, peak())
"""


class Contender(Base):
    def setup(self):
        self.path = os.path.join(self.directory, "out")
        if self.params["op"] == "load":
            self.measure("save")

    def prepare(self):
        if self.params["op"] == "save":
            shutil.rmtree(self.path, ignore_errors=True)

    def measure(self, op):
        command = [sys.executable, "-c", PROGRAM, op, self.path, str(self.params["bytes"]), ":".join(sys.path)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return [int(x) for x in done.stdout.split()]

    def run(self):
        before, peak = self.measure(self.params["op"])
        self.added = peak - before
        return {"added_bytes": self.added, "budget_bytes": BUDGET_BYTES, "peak_bytes": peak}

    def check(self):
        return 0 <= self.added <= BUDGET_BYTES + self.params["bytes"] * 0.05
