# SPDX-License-Identifier: Apache-2.0
"""The program `shardwright reshard`."""
import json
import os
import subprocess
import sys

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

    def setup(self):
        # As a module: a program's own folder would come first, and a file in it is named like the package.
        self.watched = subprocess.Popen([sys.executable, "-m", "megatron_reshard.watched"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        super().setup()

    def run(self):
        program = os.path.join(self.params["build"], "bin", "shardwright")
        command = [program, "reshard", self.source, self.target, "--tp", "1", "--memory", str(self.params["memory"]),
                   "--threads", str(self.threads)] + ([] if self.params["compare"] else ["--no-compare"])
        used = self.call(command)
        if used["code"]:
            raise RuntimeError(f"{' '.join(command)} ended with {used['code']}")
        self.most = max(self.most, used["rss_bytes"])
        allowed = self.params["memory"] + BESIDE_BUDGET
        return {"cpu_s": used["cpu_s"], "rss_of_program_bytes": self.most, "allowed_bytes": allowed,
                "share_of_allowed": self.most / allowed}

    def call(self, command):
        self.watched.stdin.write(json.dumps(command) + "\n")
        self.watched.stdin.flush()
        return json.loads(self.watched.stdout.readline())

    def found(self):
        with shardwright.open(self.target) as stored:
            return states.digests({name: stored[name].read() for name in stored if name in self.expected})

    def check(self):
        return super().check() and self.most <= self.params["memory"] + BESIDE_BUDGET
