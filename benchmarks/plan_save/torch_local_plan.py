# SPDX-License-Identifier: Apache-2.0
"""create_local_plan of torch's DefaultSavePlanner, as torch's dataclasses."""
from driver import states
from driver.contender import Base, Skip


class Contender(Base):
    items = True

    def planner_class(self):
        from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
        return DefaultSavePlanner

    def setup(self):
        try:
            import torch
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.versions = {"torch": torch.__version__}
        self.planner = self.planner_class()()
        self.state = states.torch_tensors(self.params)
        self.planner.set_up_planner(self.state, None, True)

    def prepare(self):
        self.plan = None

    def run(self):
        self.plan = self.planner.create_local_plan()
        if self.items:
            self.found = self.plan.items[0]

    def check(self):
        return len(self.plan.items) == len(self.state) if self.plan else True
