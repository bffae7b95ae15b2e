# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of one core for the whole plan of one rank with 100,000 tensors: local plan, global plan with the cover
proof, the rank's own list taken back. Nothing is written.
"""


def variants(quick):
    count = 10_000 if quick else 100_000
    line = {"ranks": 1, "items_per_rank": count, "engine": "explicit", "check": "every item planned once"}
    return [{"name": f"{count} tensors", "op": "plan", "params": {"bytes": count * 64, "tensors": count}, "line": line,
             "reps": 3 if quick else 5, "contenders": ["shardwright", "torch_dcp_planner"]}]
