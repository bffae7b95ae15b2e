# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of one core for the proof that the stored chunks of one tensor cover it exactly once, at 2^14 and 2^20
chunks, in regular, random and adversarial layouts of one to three dimensions.
"""
LAYOUTS = ["rows_1d", "random_1d", "grid_2d", "random_2d", "grid_3d", "random_3d", "thin", "same_start"]
# What looks at every pair of chunks somewhere is given no more than this many.
PAIRWISE_CHUNKS = 1 << 12


def variants(quick):
    made = []
    for power in ((12,) if quick else (12, 14, 20)):
        for layout in LAYOUTS:
            chunks = 1 << power
            line = {"chunks": chunks, "engine": "corner sums", "layout": layout,
                    "check": "damaged forms of 64 chunks are refused"}
            peers = ["torch_dcp_planner"] if chunks <= PAIRWISE_CHUNKS or layout == "rows_1d" else []
            made.append({"name": f"{chunks} chunks {layout}", "op": "prove", "line": line, "reps": 3 if quick else 5,
                         "params": {"layout": layout, "chunks": chunks}, "contenders": ["shardwright", *peers]})
    return made
