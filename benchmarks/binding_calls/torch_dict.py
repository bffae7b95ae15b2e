# SPDX-License-Identifier: Apache-2.0
"""State from a dict of torch tensors, one bulk call."""
import fit
import shardwright
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import torch
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.versions = {"torch": torch.__version__}
        self.host = fit.CHost(self.params)
        self.states = [{f"layers.{i}.weight": torch.ones(4) for i in range(n)} for n in self.params["counts"]]

    def run(self):
        return fit.measured(self.params, self.host, shardwright.State.from_dict, self.states)

    def check(self):
        state = shardwright.State.from_dict(self.states[0])
        return state.names() == list(self.states[0])
