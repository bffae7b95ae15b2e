#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GPT of megatron-core trains with two tensor-parallel ranks and is saved; its checkpoint is resharded, and the job goes on in
another shape, which Megatron alone refuses. Every loss is compared with that of a job that goes on from a checkpoint that any
shape loads, and with the job that was never stopped.

    python examples/megatron_gpt/demo.py FOLDER [--small]
"""
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import shardwright

TRAIN = Path(__file__).with_name("train.py")
SECONDS = 200
TOLERANCE = 1e-5  # relative: sums over other numbers of ranks round differently
KINDS = ("dp_reshardable", "fully_reshardable")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def job(size, *arguments):
    """(exit codes, all that the ranks printed)."""
    port, ranks = free_port(), []
    for rank in range(size):
        env = os.environ | {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                            "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
        ranks.append(subprocess.Popen([sys.executable, str(TRAIN), *map(str, arguments)], env=env, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True))
    texts = [each.communicate(timeout=SECONDS)[0] for each in ranks]
    return [each.returncode for each in ranks], "".join(texts)


def trained(size, *arguments):
    """Losses by their steps; what a job says that fails is shown."""
    codes, text = job(size, *arguments)
    if any(codes):
        raise SystemExit(f"a job of {size} ranks with {arguments} ended with {codes}:\n{text[-4000:]}")
    return {int(step): float.fromhex(loss) for step, loss in re.findall(r"step (\d+) loss (\S+)", text)}


def reshape(folder, name, model, before, after, sizes, refusal, any_loads=True):
    """A job of the shape `before` is saved after three steps, and goes on in the shape `after` = (ranks, arguments). Where
    Megatron does not even load what any shape should load (any_loads), that is resharded as well."""
    begin = time.monotonic()
    saved = {kind: f"{folder}/{name}-{kind}" for kind in KINDS}
    whole = trained(*before, *model, "--ours", "--steps", 6, "--save-at", 3,
                    *(word for kind in KINDS for word in ("--save", f"{kind}={saved[kind]}")))
    target = f"{folder}/{name}-resharded"
    report = shardwright.reshard(saved["dp_reshardable"], target, **sizes)
    control_from = saved["fully_reshardable"]
    codes, text = job(*after, *model, "--load", saved["dp_reshardable"] if any_loads else control_from)
    if not any_loads:
        shardwright.reshard(control_from, control_from + "-resharded", **sizes)
        control_from += "-resharded"
    refused = all(codes) and refusal in text
    found = trained(*after, *model, "--load", target)
    control = trained(*after, *model, "--load", control_from)
    apart = max(abs(found[step] - whole[step]) / whole[step] for step in found)
    fine = found == control and sorted(found) == [3, 4, 5] and apart <= TOLERANCE and refused
    print(f"{name:16} | {report.tensors:7} | {'yes' if found == control else 'NO':8} | {apart:.1e} | "
          f"{'yes' if refused else 'NO':10} | {time.monotonic() - begin:5.1f} s", flush=True)
    return fine


def main(folder, is_small):
    print("shape            | tensors | bitwise  | apart   | refused by | time")
    print("                 |         | control? |         | Megatron?  |", flush=True)
    mismatch = "Global shape mismatch"
    cases = [("TP2 to TP1xDP2", (), (2, "--tp", 2), (2, "--tp", 1), {"tensor_parallel": 1, "data_parallel": 2}, mismatch)]
    if not is_small:
        cases += [
            ("TP2 to PP2", (), (2, "--tp", 2), (2, "--pp", 2), {"tensor_parallel": 1, "pipeline_parallel": 2}, mismatch),
            ("MoE EP2 to EP1", ("--experts", 4), (2, "--ep", 2), (1, "--ep", 1), {"expert_parallel": 1}, "KeyError: 'optimizer'", False),
        ]
    fine = [reshape(folder, name.replace(" ", "-"), *rest) for name, *rest in cases]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--small" in sys.argv[2:]))
