# SPDX-License-Identifier: Apache-2.0
"""What Megatron does before it saves, on one core and without transport, beside megatron-core on the same inputs.

convert: one rank's experts, layers x experts as prepended axes, to what torch's checkpoint takes, and the local plan
of it.
rank: all that one rank plans by itself, from its state dict: grouping by key, conversion, local plan. Its experts are the same
in jobs of more ranks, so the time should be, too.
distribute: the greedy choice of who saves which replicated shard.
validate: proof that the main replicas of all ranks make whole tensors.
"""

CONTENDERS = ["shardwright", "megatron_core"]


def _convert(layers, experts, expert_ranks, keys, reps):
    held = layers * (experts // expert_ranks)
    params = {"task": "convert", "layers": layers, "experts": experts, "expert_ranks": expert_ranks, "keys": keys}
    line = {"ranks": expert_ranks, "items_per_rank": held * keys, "grid_shards": layers * experts * keys,
            "check": "the plan has each local box once"}
    return {"name": f"{keys} keys of {layers}x{experts}, 1/{expert_ranks} held", "op": "convert", "params": params,
            "line": line, "reps": reps, "contenders": CONTENDERS}


def _rank(layers, experts, expert_ranks, ranks, reps):
    held = layers * (experts // expert_ranks)
    params = {"task": "rank", "layers": layers, "experts": experts, "expert_ranks": expert_ranks, "keys": 1, "ranks": ranks}
    line = {"ranks": ranks, "items_per_rank": held, "grid_shards": layers * experts, "check": "the plan has each local box once"}
    return {"name": f"a rank of {ranks}: {layers}x{experts}, 1/{expert_ranks} held", "op": "plan", "params": params,
            "line": line, "reps": reps, "contenders": CONTENDERS}


def _distribute(shards, ranks, holders, reps, contenders=None):
    params = {"task": "distribute", "shards": shards, "ranks": ranks, "holders": holders}
    line = {"chunks": shards, "ranks": ranks, "holders": holders, "check": "owners of the plain rule"}
    return {"name": f"{shards} shards, {ranks} ranks, {holders} holders each", "op": "distribute", "params": params,
            "line": line, "reps": reps, "contenders": contenders or CONTENDERS}


def _validate(ranks, keys, reps):
    params = {"task": "validate", "ranks": ranks, "keys": keys}
    line = {"chunks": ranks * keys, "ranks": ranks, "items_per_rank": keys, "check": "whole passes, a hole is refused"}
    return {"name": f"{ranks} ranks x {keys} shards", "op": "validate", "params": params, "line": line, "reps": reps,
            "contenders": CONTENDERS}


def variants(quick):
    if quick:
        return [_convert(16, 32, 8, 2, 3), _rank(16, 32, 8, 64, 3), _distribute(10_000, 64, 32, 3), _validate(64, 200, 3)]
    return [_convert(16, 32, 8, 8, 5), _convert(48, 128, 8, 4, 3),
            *(_rank(48, 128, 8, ranks, 3) for ranks in (8, 64, 1024)), _distribute(20_000, 64, 32, 5),
            _distribute(5_000, 256, 128, 5), _distribute(1_000_000, 4096, 16, 3, ["shardwright"]),
            _validate(64, 1_000, 5), _validate(256, 2_000, 3)]
