# SPDX-License-Identifier: Apache-2.0
"""State from a dict of numpy arrays, one bulk call."""
import fit
import shardwright
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import numpy
        except ImportError as e:
            raise Skip(f"numpy not importable: {e}") from e
        self.versions = {"numpy": numpy.__version__}
        self.host = fit.CHost(self.params)
        self.states = [{f"layers.{i}.weight": numpy.ones(4) for i in range(n)} for n in self.params["counts"]]

    def run(self):
        return fit.measured(self.params, self.host, shardwright.State.from_dict, self.states)

    def check(self):
        state = shardwright.State.from_dict(self.states[0])
        return state.names() == list(self.states[0])
