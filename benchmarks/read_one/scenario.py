# SPDX-License-Identifier: Apache-2.0
"""Reads of single tensors of 32 bytes, one call each in no order, out of an open checkpoint of 1,000 to 300,000: the time
must not grow with their number."""


def variants(quick):
    made = []
    for count in (1_000, 10_000) if quick else (1_000, 30_000, 300_000):
        line = {"tensors": count, "reads": 2_000, "check": "values"}
        made.append({"name": f"1 of {count}", "op": "read", "params": line, "line": line, "reps": 3 if quick else 9,
                     "contenders": ["shardwright", "safetensors_mmap"]})
    return made
