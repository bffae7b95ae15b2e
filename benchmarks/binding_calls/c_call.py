# SPDX-License-Identifier: Apache-2.0
"""Ten million getter calls through the function table of the library, from C."""
import os
import subprocess

from driver.contender import Base


class Contender(Base):
    def run(self):
        build = self.params["build"]
        program = [os.path.join(build, "bin", "bench_c_call"), os.path.join(build, "lib", "libshardwright.so.0")]
        done = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True)
        self.nanoseconds = float(done.stdout)
        return {"ns_per_call": self.nanoseconds}

    def check(self):
        return self.nanoseconds > 0
