# SPDX-License-Identifier: Apache-2.0
"""shardwright's save planner, plan buffers moved by hand as a host would."""
import json
import os
import shutil

import shardwright
from driver import states
from driver.contender import Base


class Contender(Base):
    versions = {"shardwright": shardwright.__version__}

    def setup(self):
        self.state = states.arrays(self.params)
        self.path = os.path.join(self.directory, "out")

    def prepare(self):
        shutil.rmtree(self.path, ignore_errors=True)

    def run(self):
        planner = shardwright.SavePlanner(self.state, path=self.path, verify_replicas="off")
        local = planner.local_plan()
        self.mine = planner.global_plan([local])[0]
        planner.finish(self.mine)

    def check(self):
        info = json.loads(shardwright.plan_info(self.mine))
        return info["item_count"] == len(self.state)
