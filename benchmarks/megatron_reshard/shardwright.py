# SPDX-License-Identifier: Apache-2.0
"""The program `shardwright reshard`."""
import os
import subprocess

import shardwright
from driver import megatron, states
from megatron_reshard import contents
from megatron_reshard.in_one_process import InOneProcess

BESIDE_BUDGET = 64 << 20


class Contender(InOneProcess):
    most = 0  # of all runs

    def take_package(self):
        return megatron.ours()

    def source_tree(self, state):
        return contents.of_ranks(self.package, state, self.params)

    def run(self):
        program = os.path.join(self.params["build"], "bin", "shardwright")
        command = [program, "reshard", self.source, self.target, "--tp", "1", "--memory", str(self.params["memory"]),
                   "--threads", str(self.threads)] + ([] if self.params["compare"] else ["--no-compare"])
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
        self.most = max(self.most, used.ru_maxrss * 1024)
        allowed = self.params["memory"] + BESIDE_BUDGET
        return {"cpu_s": used.ru_utime + used.ru_stime, "rss_of_program_bytes": self.most, "allowed_bytes": allowed,
                "share_of_allowed": self.most / allowed}

    def found(self):
        with shardwright.open(self.target) as stored:
            return states.digests({name: stored[name].read() for name in stored if name in self.expected})

    def check(self):
        return super().check() and self.most <= self.params["memory"] + BESIDE_BUDGET
