# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.megatron."""
import worlds
from driver.contender import Base, Skip


class Contender(Base):
    def setup(self):
        try:
            import torch
        except ImportError as e:
            raise Skip(f"torch not importable: {e}") from e
        import shardwright
        from shardwright.torch import megatron
        from shardwright.torch.megatron import flattening
        self.grouped = flattening._replace_state_dict_keys_with_sharded_keys
        self.names, self.versions = megatron, {"torch": torch.__version__, "shardwright": shardwright.__version__}
        self.task = self.params["task"]
        if self.task == "convert":
            self.leaves = worlds.expert_shards(self.params, megatron)
        elif self.task == "rank":
            worlds.simulate_ranks(self.params["ranks"])
            self.leaves = worlds.state_dict(self.params, megatron)
        elif self.task == "distribute":
            self.holders, self.sizes = worlds.replicated_shards(self.params)
        else:
            self.metadata = worlds.all_ranks(self.params, megatron)

    def run(self):
        if self.task in ("convert", "rank"):
            leaves = self.leaves
            if self.task == "rank":
                leaves, _, _ = self.grouped(leaves, True)
            planner = self.names.MCoreSavePlanner(flatten_state_dict=False)
            planner.set_up_planner(self.names.mcore_to_pyt_state_dict(leaves), None, True)
            self.plan = planner.create_local_plan()
        elif self.task == "distribute":
            self.owners = self.names.distribute_shards_to_ranks(self.holders, self.sizes, self.params["ranks"])
        else:
            self.names.validate_sharding_integrity(self.metadata)

    def check(self):
        if self.task in ("convert", "rank"):
            return worlds.is_whole_plan(self.params, list(self.plan.items))
        if self.task == "distribute":
            return self.owners == worlds.owners_of_the_plain_rule(self.params, self.holders, self.sizes)
        try:
            self.names.validate_sharding_integrity([self.metadata[0][1:], *self.metadata[1:]])
        except self.names.CheckpointingException:
            return True
        return False
