# SPDX-License-Identifier: Apache-2.0
"""The same job described box by box: the local plans of all ranks are made before the timing."""
import ctypes
import os

from driver.contender import Base


class Contender(Base):
    def setup(self):
        self.library = ctypes.CDLL(os.path.join(self.params["build"], "lib", "bench_plan_symbolic.so"))
        made = self.library.bench_make(*self.params["mesh"], self.params["tensors"], int(self.params["all_differ"]))
        if not made or not self.library.bench_expand_locals():
            raise RuntimeError("the job could not be described")

    def run(self):
        if not self.library.bench_plan_explicit():
            raise RuntimeError("the job could not be planned")
        return {"engine": "box by box"}

    def check(self):
        return self.library.bench_compare() == 1
