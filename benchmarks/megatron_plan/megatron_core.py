# SPDX-License-Identifier: Apache-2.0
"""megatron-core as it is installed. It asks for its rank, so a process group without transport stands behind it."""
import warnings

import worlds
from driver.contender import Base, Skip

WORLD_SIZE = 8  # the conversion says of all shards but the local ones that another rank has them


class Contender(Base):
    def setup(self):
        warnings.simplefilter("ignore")
        try:
            import torch
            from megatron.core import __version__
            from megatron.core.dist_checkpointing import exchange_utils, mapping, validation
            from megatron.core.dist_checkpointing.strategies import torch as strategies
        except ImportError as e:
            raise Skip(f"megatron-core not importable: {e}") from e
        self.task = self.params["task"]
        ranks = self.params["ranks"] if self.task == "rank" else WORLD_SIZE
        worlds.simulate_ranks(ranks)
        self.mapping, self.exchange, self.validation, self.strategies = mapping, exchange_utils, validation, strategies
        self.versions = {"torch": torch.__version__, "megatron-core": __version__}
        if self.task == "distribute":
            self.holders, self.sizes = worlds.replicated_shards(self.params)
        elif self.task == "validate":
            self.metadata = worlds.all_ranks(self.params, mapping)

    def prepare(self):
        if self.task == "convert":  # it changes its input
            self.leaves = worlds.expert_shards(self.params, self.mapping)
        elif self.task == "rank":
            self.leaves = worlds.state_dict(self.params, self.mapping)

    def run(self):
        if self.task in ("convert", "rank"):
            leaves = self.leaves
            if self.task == "rank":
                leaves, _, _ = self.strategies._replace_state_dict_keys_with_sharded_keys(leaves, True)
            planner = self.strategies.MCoreSavePlanner(flatten_state_dict=False)
            planner.set_up_planner(self.strategies.mcore_to_pyt_state_dict(leaves), None, True)
            self.plan = planner.create_local_plan()
        elif self.task == "distribute":
            self.owners = self.exchange.distribute_shards_to_ranks(self.holders, self.sizes, self.params["ranks"], set())
        else:
            self.validation.validate_sharding_integrity(self.metadata)

    def check(self):
        if self.task in ("convert", "rank"):
            return worlds.is_whole_plan(self.params, self.plan.items)
        if self.task == "distribute":
            return self.owners == worlds.owners_of_the_plain_rule(self.params, self.holders, self.sizes)
        try:
            self.validation.validate_sharding_integrity([self.metadata[0][1:], *self.metadata[1:]])
        except (self.mapping.CheckpointingException, AssertionError):
            return True
        return False
