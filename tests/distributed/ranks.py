# SPDX-License-Identifier: Apache-2.0
"""Starts N processes of worker.py on this machine, once per world size, and gathers what each case said on each rank."""
import os
import socket
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "support"))
import rank_outcomes  # noqa: E402

LAUNCH_SECONDS = 900


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def launch(world_size, folder, *arguments, seconds=LAUNCH_SECONDS, program="worker.py"):
    """Case name -> list of outcomes, one per rank: "ok" or the text of what went wrong."""
    port, worker = free_port(), Path(__file__).parent / program
    processes = []
    for rank in range(world_size):
        env = os.environ | {"RANK": str(rank), "WORLD_SIZE": str(world_size), "MASTER_ADDR": "127.0.0.1",
                            "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
                            "PYTHONPATH": os.pathsep.join([str(worker.parent), *sys.path])}
        command = [sys.executable, str(worker), str(folder), *arguments]
        processes.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    outcomes, errors = rank_outcomes.gather(processes, seconds)
    return {case: [found.get(rank, "no outcome") for rank in range(world_size)] for case, found in outcomes.items()}, errors
