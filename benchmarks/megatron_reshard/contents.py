# SPDX-License-Identifier: Apache-2.0
"""The state: as many matrices as there are layers, half of them cut into rows and half into columns by two tensor-parallel
ranks, with masters, which equal them, and two moments in the order of a bucket, the last parameter first."""
import argparse

from driver import states

RANKS, COLUMNS = 2, 1024
NAMES = ("param", "exp_avg", "exp_avg_sq")
GROUPS = [{"is_expert_parallel": False, "wd_mult": 1.0, "lr_mult": 1.0, "is_decoupled_lr": False, "lr": 0.01, "step": 2.0}]


def whole(params):
    """Name -> tensor: the weights and `optimizer.state.NAME.WEIGHT`, as one rank has them."""
    import torch
    count = params["layers"]
    rows = params["bytes"] // 4 // 4 // count // COLUMNS  # a weight has four tensors
    drawn = states.each_array({"bytes": rows * COLUMNS * 4 * count * len(NAMES), "tensors": count * len(NAMES)})
    made = {}
    for layer in range(count):
        weight, *moments = (torch.from_numpy(next(drawn)[1]).reshape(rows, COLUMNS) for _ in NAMES)
        made[f"layers.{layer}.weight"] = weight
        for name, value in zip(NAMES, (weight, *moments)):
            made[f"optimizer.state.{name}.layers.{layer}.weight"] = value
    return made


def common(kind, sizes):
    return {"optimizer": {"param_state_sharding_type": kind}, "iteration": 2,
            "content_metadata": {"distrib_optim_sharding_type": kind},
            "args": argparse.Namespace(tensor_model_parallel_size=sizes, pipeline_model_parallel_size=1,
                                       expert_model_parallel_size=1, num_layers=1, hidden_size=COLUMNS)}


def of_ranks(package, state, params):
    """What two tensor-parallel ranks have, as one process saves it."""
    import torch
    tree, axes = {}, {f"layers.{layer}.weight": layer % 2 for layer in range(params["layers"])}
    for name, axis in axes.items():
        tree[name] = [package.ShardedTensor.from_rank_offsets(name, part.contiguous(), (axis, rank, RANKS))
                      for rank, part in enumerate(state[name].chunk(RANKS, axis))]
    for rank in range(RANKS):
        group = f"optimizer.distributed.dp_group_idx_{rank}"
        parts = {name: [state[f"optimizer.state.{name}.{weight}"].chunk(RANKS, axis)[rank].reshape(-1)
                        for weight, axis in reversed(axes.items())] for name in NAMES}
        numel = sum(part.numel() for part in parts["param"])
        for name in NAMES:
            tree[f"{group}.{name}"] = list(_runs(package, f"{group}.gbuf_idx_0.dtype_(torch.float32, torch.float32)"
                                                 f".bucket_idx_0.{name}", parts[name], numel))
        counts = [{(torch.float32, torch.float32): [numel]}]
        objects = {"optimizer": {"param_groups": GROUPS}, "per_bucket_numel": counts, "per_bucket_numel_unpadded": counts}
        for name, value in objects.items():
            tree[f"{group}.{name}"] = package.ShardedObject(f"{group}.{name}", value, (1,), (0,))
    return tree | common("dp_reshardable", RANKS)


def _runs(package, key, parts, numel):
    begin = 0
    for part in parts:
        yield package.ShardedTensor(key, part, part.dtype, (part.numel(),), (numel,), (begin,), None)
        begin += part.numel()


def of_one(package, state):
    """The same as one rank has it, fully reshardable."""
    tree = {name: package.ShardedTensor.from_rank_offsets(name, tensor) for name, tensor in state.items()}
    return tree | common("fully_reshardable", 1)
