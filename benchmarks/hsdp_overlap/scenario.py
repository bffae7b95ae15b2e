# SPDX-License-Identifier: Apache-2.0
"""How much of the communication a step waits for: the model of hsdp_step by 2 processes over Gloo, behind an emulated link of
0.25 GB/s, with 2,048 tokens and 4 blocks (512 and 2 when QUICK), so that a unit computes for longer than its gather takes.

The emulation: an operation ends no sooner than its bytes would have come over the link, one operation after the other; ours by
`shardwright.hsdp.delayed`, FSDP2's by sleeping in a custom all-gather and reduce-scatter. exposed_s is the step less the
same step of each process by itself, which both take just before: what the step waits for or computes because of the others.

In the second variant computing is a sleep and units are small, so that what is exposed is the schedule's, whatever else the
machine does: 70 ms of forward and 150 ms of backward of each of 4 units, whose gather and sum take 67 ms each. All 12 one after
the other are 804 ms; the first gather and the last sum, which nothing can hide, 134 ms.
"""
LINK = 0.25e9  # bytes per second
SLEEPS = {"forward": 0.070, "backward": 0.150}  # seconds of a unit
SLEEPING_GATHER = 0.067  # seconds


def variants(quick):
    large = {"tokens": 512 if quick else 2048, "width": 1024, "hidden": 4096, "blocks": 2 if quick else 4, "link": LINK}
    small = {"tokens": 4, "width": 256, "hidden": 512, "blocks": 4, "sleeps": SLEEPS}
    small["link"] = 2 * small["width"] * small["hidden"] * 4 / 2 / SLEEPING_GATHER  # of a unit the other rank's half
    return [variant("2 ranks, emulated link", quick, large), variant("2 ranks, emulated link, computing sleeps", quick, small)]


def variant(name, quick, params):
    return {"name": name, "op": "step", "reps": 3 if quick else 10, "params": params | {"shape": [2], "world": 2},
            "line": {"world": 2, "tokens": params["tokens"], "link_bytes_per_second": params["link"],
                     "check": "parameters after three steps, against one process"},
            "contenders": ["shardwright", "fsdp2"]}
