# SPDX-License-Identifier: Apache-2.0
"""What the phases of a unit cost the host: one iteration of 100 units of two elements each on one of two ranks whose transport
moves nothing. A unit has four phases in it: before and after forward, before and after backward with its gradients. us_per_phase
is the time of the iteration over all phases; through torch the time of the same model without units is taken off.
"""
UNITS = 100


def variants(quick):
    return [{"name": f"{UNITS} units", "op": "phases", "reps": 5 if quick else 25, "params": {"units": UNITS},
             "line": {"units": UNITS, "check": "every phase succeeds; gradients of all parameters are there"},
             "contenders": ["shardwright_c", "shardwright_python", "shardwright_torch", "fsdp2"]}]
