# SPDX-License-Identifier: Apache-2.0
"""torch's DefaultSavePlanner on the same state, without transport or storage."""
from driver import states
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import torch
            from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        self.planner_class, self.versions = DefaultSavePlanner, {"torch": torch.__version__}
        self.state = states.torch_tensors(self.params)

    def prepare(self):
        self.plan = None  # the last one is not dropped in the timing

    def run(self):
        planner = self.planner_class()
        planner.set_up_planner(self.state, storage_meta=None, is_coordinator=True)
        plans, _ = planner.create_global_plan([planner.create_local_plan()])
        self.plan = planner.finish_plan(plans[0])

    def check(self):
        return len(self.plan.items) == len(self.state)
