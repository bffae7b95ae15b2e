# SPDX-License-Identifier: Apache-2.0
"""shardwright.hsdp."""
import time

import numpy
import shardwright
from driver.contender import Base
from shardwright.hsdp import Hsdp, Mesh, Param, fake_communicator


class Contender(Base):
    def setup(self):
        self.versions = {"shardwright": shardwright.__version__}
        mesh = Mesh((2,), rank=0)
        mesh.set_communicator(0, fake_communicator(0, 2))
        self.hsdp = Hsdp(mesh)
        self.units = [self.hsdp.unit(f"layers.{number}") for number in range(self.params["units"])]
        for unit in self.units:
            unit.add_params([Param("weight", numpy.ones(2, numpy.float32))])
            unit.seal()
        self.grad = numpy.ones(2, numpy.float32)

    def run(self):
        start = time.perf_counter()
        for unit in self.units:
            unit.pre_forward()
            unit.post_forward()
        for unit in reversed(self.units):
            unit.pre_backward()
            unit.add_grads([0], [self.grad], take=True)
            unit.post_backward()
        self.hsdp.finalize_backward()
        seconds = time.perf_counter() - start
        self.has_all = all(unit.grad_state == "ready" for unit in self.units)
        self.hsdp.zero_grads()
        return {"us_per_phase": seconds * 1e6 / (4 * self.params["units"])}

    def check(self):
        return self.has_all
