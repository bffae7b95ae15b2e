# SPDX-License-Identifier: Apache-2.0
"""Peak resident memory of a whole save and a whole load of 1 GiB, beside the state itself and the staging budget.

ratio_budget is (peak - what the process held before) / (budget): at most state x 5 % + budget may be added.
"""
GIB = 1 << 30


def variants(quick):
    line = {"bytes": GIB, "tensors": 100, "check": "peak within state + budget + 5 %"}
    return [{"name": "default budget", "op": op, "params": {"bytes": GIB, "tensors": 100, "op": op}, "line": line,
             "reps": 1, "contenders": ["shardwright"]} for op in ("save", "load")]
