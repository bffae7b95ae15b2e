# SPDX-License-Identifier: Apache-2.0
"""How much of the communication a step waits for: the model of hsdp_step by 2 processes over Gloo, behind an emulated link of
0.25 GB/s, with 512 tokens and 4 blocks (2 when QUICK), so that a unit computes for longer than its gather takes.

The emulation: an operation ends no sooner than its bytes would have come over the link, one operation after the other; ours by
`shardwright.hsdp.delayed`, FSDP2's by sleeping in a custom all-gather and reduce-scatter. exposed_s is the step less the
same step of each process by itself, which both take just before: what the step waits for or computes because of the others.
"""
LINK = 0.25e9  # bytes per second


def variants(quick):
    params = {"shape": [2], "world": 2, "tokens": 512, "width": 1024, "hidden": 4096, "blocks": 2 if quick else 4,
              "link": LINK}
    return [{"name": "2 ranks, emulated link", "op": "step", "reps": 3 if quick else 10, "params": params,
             "line": {"world": 2, "tokens": params["tokens"], "link_bytes_per_second": LINK,
                      "check": "parameters after three steps, against one process"},
             "contenders": ["shardwright", "fsdp2"]}]
