# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of one core for the load plan of one rank that wants an eighth of every tensor: which stored chunks it
reads, and the proof that they fill what it wants exactly once. `plan`: what is searched is ready. `first`: the first
plan of an opened checkpoint, with the index of its names and the searches over the chunks of every tensor. Nothing is
read. `torch's load plan`: through torch's load planner classes, metadata objects in and
ReadItems out.
"""
LAYOUTS = ["rows", "grid", "shuffled", "irregular", "scattered"]
ROW_PEERS = ["shardwright_torch_reads", "torch_dcp_planner", "hyperparallel_algorithm"]


def variants(quick):
    chunks, tensors = (512, 50) if quick else (4096, 1000)
    reps = 3 if quick else 5
    made = []
    for op, layouts in (("plan", LAYOUTS), ("first", LAYOUTS)):
        for layout in layouts:
            line = {"chunks": chunks, "tensors": tensors, "engine": "explicit", "layout": layout,
                    "check": "every read against every pair of wanted box and chunk, 64 chunks"}
            peers = ROW_PEERS if op == "plan" and layout == "rows" else []
            made.append({"name": f"{op} {layout}", "op": op, "line": line, "reps": reps,
                         "params": {"op": op, "layout": layout, "chunks": chunks, "tensors": tensors},
                         "contenders": ["shardwright", *peers]})
    for chunks in (8, chunks):  # few chunks of each tensor, and many
        line = {"chunks": chunks, "tensors": tensors, "engine": "explicit", "layout": "rows",
                "check": "as many reads as wanted"}
        made.append({"name": f"torch's load plan, {tensors} x {chunks} chunks", "op": "plan", "line": line, "reps": reps,
                     "params": {"chunks": chunks, "tensors": tensors},
                     "contenders": ["shardwright_torch_load_plan", "torch_load_plan"]})
    return made
