# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of one core for save planning. `plan`: the whole plan of one rank with 100,000 tensors, local plan, global
plan with the cover proof, the rank's own list taken back. `merge`: the global step alone, on what all ranks described:
every second tensor is replicated on all ranks, the others are cut into rows; peers do it on their own objects, which
they have at hand; its peak memory beside the plans is at most 96 bytes per item. `open`, `encode`: plan buffers
of all ranks through all checks, and one plan of many items into reused memory. Nothing is written.
"""
PEERS = {"exact torch": ["torch_dcp_merge"], "exact HyperParallel": ["hyperparallel_merge"]}
WORLDS = {  # preset, owner: as in include/shardwright/save.h
    "exact torch": {"preset": 2, "owner": 2}, "exact HyperParallel": {"preset": 1, "owner": 2},
    "balanced": {"preset": 0, "owner": 0}, "native": None}


def _merge(ranks, items, name, reps, peers, all_cut=False):
    line = {"ranks": ranks, "items_per_rank": items, "engine": "explicit", "policy": name,
            "check": "every box kept once, every plan sound"}
    title = f"merge {ranks} x {items} {name}" + (", all cut" if all_cut else "")
    return {"name": title, "op": "merge", "line": line, "reps": reps,
            "params": {"ranks": ranks, "items": items, "op": "merge", "policy": WORLDS[name], "all_cut": all_cut},
            "contenders": ["shardwright_merge", *peers]}


def torch_variants(quick):
    """Through torch's planner classes."""
    ranks, items, tensors = 64 if quick else 1024, 1000, 10_000 if quick else 100_000
    line = {"ranks": ranks, "items_per_rank": items, "engine": "explicit",
            "check": "every item once, every chunk listed"}
    local = {"ranks": 1, "items_per_rank": tensors, "engine": "explicit", "check": "every tensor is an item"}
    world = {"op": "plan", "line": line, "reps": 3, "params": {"ranks": ranks, "items_per_rank": items}}
    step = world | {"name": f"torch's global step, {ranks} x {items}",
                    "contenders": ["shardwright_torch_buffers", "shardwright_torch_items", "torch_global_step"]}
    beside = [world | {"name": f"between torch's collectives, {ranks} x {items}",
                       "contenders": ["shardwright_torch_sent_step", "torch_sent_step"]},
              world | {"name": f"torch's index, {ranks} x {items}",
                       "contenders": ["shardwright_dcp_index", "shardwright_torch_index", "torch_index"]}]
    plan = {"name": f"torch's local plan, {tensors} tensors", "op": "plan", "line": local, "reps": 3,
            "params": {"bytes": tensors * 64, "tensors": tensors},
            "contenders": ["shardwright_torch_local_buffer", "shardwright_torch_local_items", "torch_local_plan"]}
    return [step, *([] if quick else beside), plan]  # each process imports torch


def variants(quick):
    count = 10_000 if quick else 100_000
    line = {"ranks": 1, "items_per_rank": count, "engine": "explicit", "check": "every item planned once"}
    made = [{"name": f"{count} tensors", "op": "plan", "params": {"bytes": count * 64, "tensors": count}, "line": line,
             "reps": 3 if quick else 5, "contenders": ["shardwright", "torch_dcp_planner"]}]
    reps, many = (3, 256) if quick else (5, 1024)
    made += [_merge(64, 1000, name, reps, PEERS.get(name, [])) for name in WORLDS]
    made += [_merge(many, 1000, name, 3, [] if quick else PEERS.get(name, [])) for name in WORLDS]
    if not quick:
        made.append(_merge(1024, 1000, "exact torch", 3, [], all_cut=True))
        made += [_merge(16384, 1000, name, 3, []) for name in ("exact torch", "native")]
    for op, ranks, tensors, boxes in (("open", many, 1000, 1), ("open", 1, 1000, 1000), ("encode", 1, 1000, 1000)):
        line = {"ranks": ranks, "items_per_rank": tensors * boxes, "tensors": tensors, "engine": "explicit",
                "check": "every plan sound"}
        made.append({"name": f"{op} {ranks} x {tensors * boxes}", "op": op, "line": line, "reps": reps,
                     "params": {"ranks": ranks, "items": tensors, "boxes": boxes, "all_cut": boxes > 1, "op": op,
                                "policy": None},
                     "contenders": ["shardwright_merge"]})
    return made + torch_variants(quick)
