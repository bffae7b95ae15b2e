# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of one core for the whole plan of one rank with 100,000 tensors: local plan, global plan with the cover
proof, the rank's own list taken back. Nothing is written.
"""


def torch_variants(quick):
    """Through torch's planner classes. The collector is on, what the input is made of is out of its sight."""
    ranks, items, tensors = 64 if quick else 1024, 1000, 10_000 if quick else 100_000
    line = {"ranks": ranks, "items_per_rank": items, "engine": "explicit", "collector": "on, input frozen",
            "check": "every item once, every chunk listed"}
    local = {"ranks": 1, "items_per_rank": tensors, "engine": "explicit", "collector": "on",
             "check": "every tensor is an item"}
    return [{"name": f"torch's global step, {ranks} x {items}", "op": "plan", "line": line, "reps": 3,
             "params": {"ranks": ranks, "items_per_rank": items},
             "contenders": ["shardwright_torch_buffers", "shardwright_torch_items", "torch_global_step"]},
            {"name": f"torch's local plan, {tensors} tensors", "op": "plan", "line": local, "reps": 3,
             "params": {"bytes": tensors * 64, "tensors": tensors},
             "contenders": ["shardwright_torch_local_buffer", "shardwright_torch_local_items", "torch_local_plan"]}]


def variants(quick):
    count = 10_000 if quick else 100_000
    line = {"ranks": 1, "items_per_rank": count, "engine": "explicit", "check": "every item planned once"}
    return [{"name": f"{count} tensors", "op": "plan", "params": {"bytes": count * 64, "tensors": count}, "line": line,
             "reps": 3 if quick else 5, "contenders": ["shardwright", "torch_dcp_planner"]}, *torch_variants(quick)]
