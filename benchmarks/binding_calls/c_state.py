# SPDX-License-Identifier: Apache-2.0
"""State from flat arrays in C, one bulk call; the arrays are ready before the clock starts."""
import fit
from driver.contender import Base


class Contender(Base):
    def setup(self):
        self.host = fit.CHost(self.params)

    def run(self):
        self.result = fit.measured_in_c(self.params, self.host)
        return self.result

    def check(self):
        return self.result["ns_per_tensor"] > 0
