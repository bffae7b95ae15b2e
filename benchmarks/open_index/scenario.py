# SPDX-License-Identifier: Apache-2.0
"""Opening a directory in torch's format whose index names many chunks: for the first time, and again in the same process while
nothing has changed. 1,000 float32 tensors in equal rows of 16 bytes, saved by shardwright.
"""
TENSORS = 1_000


def variants(quick):
    made = []
    for chunks in (10_000,) if quick else (100_000, 1_000_000):
        for opening in ("first", "again"):
            params = {"chunks": chunks, "tensors": TENSORS, "opening": opening}
            made.append({"name": f"{chunks:,} chunks, {opening}", "op": "open", "params": params,
                         "line": params | {"check": "a tensor read"}, "reps": 3 if quick else 5,
                         "contenders": ["shardwright", *(["torch_dcp"] if opening == "first" else [])]})
    return made
