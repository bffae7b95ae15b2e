# SPDX-License-Identifier: Apache-2.0
"""Runs a small C host that opens the library by dlopen and makes a context; it prints the milliseconds."""
import os
import shutil
import subprocess

from driver.contender import Base

PROMISED = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
SIZE_LIMIT_BYTES = 5 << 20


class Contender(Base):
    def setup(self):
        build = self.params["build"]
        self.program = os.path.join(build, "bin", "bench_startup")
        self.library = os.path.join(build, "lib", "libshardwright.so.0")
        stripped = os.path.join(self.directory, "stripped.so")
        shutil.copyfile(self.library, stripped)
        subprocess.run(["strip", stripped], check=True)
        self.stripped_bytes = os.path.getsize(stripped)

    def run(self):
        done = subprocess.run([self.program, self.library], check=True, stdout=subprocess.PIPE, text=True)
        return {"dlopen_context_ms": float(done.stdout), "stripped_bytes": self.stripped_bytes}

    def check(self):
        done = subprocess.run(["objdump", "-p", self.library], check=True, stdout=subprocess.PIPE, text=True)
        needed = {line.split()[1] for line in done.stdout.splitlines() if line.strip().startswith("NEEDED")}
        return needed <= PROMISED and self.stripped_bytes < SIZE_LIMIT_BYTES
