#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training job on two processes is killed; three go on from its newest checkpoint. Compares the losses with those of a job
that was never killed, and lets torch's own load read the last checkpoint.

    python examples/fsdp2_train/demo.py FOLDER
"""
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import torch
import torch.distributed.checkpoint as theirs

TRAIN = Path(__file__).with_name("train.py")
SECONDS = 150
TOLERANCE = 1e-7  # sums over other numbers of ranks round differently


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def job(size, *arguments):
    """(exit codes, what rank 0 printed)."""
    port, ranks = free_port(), []
    for rank in range(size):
        env = os.environ | {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                            "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
        ranks.append(subprocess.Popen([sys.executable, str(TRAIN), *arguments], env=env, stdout=subprocess.PIPE, text=True))
    texts = [each.communicate(timeout=SECONDS)[0] for each in ranks]
    return [each.returncode for each in ranks], texts[0]


def losses(text):
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+) loss (\S+)", text)}


def main(folder):
    codes, whole = job(2, "--folder", f"{folder}/whole")
    assert codes == [0, 0], codes
    codes, first = job(2, "--folder", f"{folder}/run", "--kill-at", "8")
    print(f"2 ranks: {max(losses(first))} steps, then killed: exit codes {codes}")
    codes, second = job(3, "--folder", f"{folder}/run")
    assert codes == [0, 0, 0], codes
    resumed = re.search(r"resumed .*", second)
    print(resumed[0] if resumed else "started anew")
    wanted, found = losses(whole), losses(first) | losses(second)
    apart = max(abs(found[step] - wanted[step]) for step in wanted)
    print(f"12 steps, losses differ by at most {apart:.1e}")
    state = {"data.position": 0, "model.head.bias": torch.zeros(1, dtype=torch.float64)}
    theirs.load(state, checkpoint_id=f"{folder}/run/step-00000012", no_dist=True)
    print(f"torch reads step {state['data.position']}")
    return 0 if apart <= TOLERANCE and min(losses(second)) == 9 and state["data.position"] == 12 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
