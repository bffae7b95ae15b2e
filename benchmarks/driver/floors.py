# SPDX-License-Identifier: Apache-2.0
"""Runs the floor probe and remembers which variant won, so that later probes cost one pass."""
import json
import os
import subprocess


# Passes of a probe, of which the median counts: a copy in memory is short, so one pass says little.
PASSES = {"memcpy": 5, "fresh": 5}


class Floor:
    """One kind of floor at one size; call it for seconds."""

    def __init__(self, program, kind, size_bytes, directory):
        self.program, self.kind, self.size, self.directory = program, kind, size_bytes, directory
        self.variant = None
        self.lines = []

    def __call__(self):
        env = dict(os.environ)
        if self.variant:
            env["FLOOR_VARIANT"] = self.variant
        os.sync()  # as before each contender
        command = [self.program, self.kind, str(self.size), str(PASSES.get(self.kind, 1)), self.directory]
        done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
        line = json.loads(done.stdout)
        if "=" in line["variant"]:
            self.variant = line["variant"]
        self.lines.append(line)
        return line["s_median"]
