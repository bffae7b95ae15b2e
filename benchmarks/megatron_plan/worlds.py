# SPDX-License-Identifier: Apache-2.0
"""Inputs and checks of the scenario, from the descriptor classes of either package."""
import torch

HIDDEN = 4


def expert_shards(params, kinds):
    """Descriptors by key: the shards of expert rank 0, layers and experts as prepended axes."""
    layers, experts = params["layers"], params["experts"]
    held = range(experts // params["expert_ranks"])
    data = torch.ones(HIDDEN)
    return {f"experts.{key}": [kinds.ShardedTensor.from_rank_offsets(
        f"experts.{key}", data, (0, layer, layers), (1, expert, experts), prepend_axis_num=2)
        for layer in range(layers) for expert in held] for key in range(params["keys"])}


def state_dict(params, kinds):
    """The same as a model has them: by layer and expert."""
    leaves = expert_shards(params, kinds)
    held = params["experts"] // params["expert_ranks"]
    return {f"layers.{layer}": {f"experts.{expert}": {key: shards[layer * held + expert] for key, shards in leaves.items()}
                                for expert in range(held)} for layer in range(params["layers"])}


def simulate_ranks(ranks):
    """A default group without transport."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)


def is_whole_plan(params, items):
    """True when the items are the boxes of expert_shards, each once."""
    held = range(params["experts"] // params["expert_ranks"])
    expected = {(f"experts.{key}", (layer, expert, 0)) for key in range(params["keys"])
                for layer in range(params["layers"]) for expert in held}
    return len(items) == len(expected) and {(i.index.fqn, tuple(i.index.offset)) for i in items} == expected


def replicated_shards(params):
    """Holders and bytes by shard id: blocks of neighbouring ranks hold the same shards."""
    blocks = params["ranks"] // params["holders"]
    holders, sizes = {}, {}
    for number in range(params["shards"]):
        begin = number % blocks * params["holders"]
        shard = (f"layer.{number % 977}.weight", (number,), None)
        holders[shard] = list(range(begin, begin + params["holders"]))
        sizes[shard] = 64 * (number * 2_654_435_761 % 4_099)
    return holders, sizes


def owners_of_the_plain_rule(params, holders, sizes):
    """The greedy rule without any structure behind it."""
    loads, owners = [0] * params["ranks"], {}
    for shard in sorted(holders, key=lambda s: (len(holders[s]), -sizes[s], s)):
        rank = min(holders[shard], key=lambda r: (loads[r], r))
        loads[rank] += sizes[shard]
        owners[shard] = rank
    return owners


def all_ranks(params, kinds):
    """Descriptors of all ranks: tensors of two dimensions, split by the ranks on alternating axes."""
    data = torch.ones(2, 3)
    ranks = params["ranks"]
    return [[kinds.ShardedTensor.from_rank_offsets(f"layer.{key}.weight", data, (key % 2, rank, ranks)).without_data()
             for key in range(params["keys"])] for rank in range(ranks)]
