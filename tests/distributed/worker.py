# SPDX-License-Identifier: Apache-2.0
"""One rank of a launch: runs every case of the files of cases that fits the world size and prints one JSON line per case.

A case that fails on one rank does not stop the others: after each case all ranks meet, over a fresh group of the store.
"""
import faulthandler
import json
import os
import sys
import time
import traceback
from pathlib import Path

import cases
import collective_cases  # noqa: F401  # adds its cases to those of cases
import dcp_cases  # noqa: F401  # likewise
import dcp_file_cases  # noqa: F401
import dcp_public_cases  # noqa: F401
import dcp_state_cases  # noqa: F401
import dtensor_cases  # noqa: F401
import hsdp_cases  # noqa: F401
import hsdp_checkpoint_cases  # noqa: F401
import hsdp_device_cases  # noqa: F401
import hsdp_dtensor_cases  # noqa: F401
import hsdp_matrix_cases  # noqa: F401
import hsdp_mesh_cases  # noqa: F401
import hsdp_option_cases  # noqa: F401
import hsdp_ragged_cases  # noqa: F401
import hsdp_script_cases  # noqa: F401
import planner_cases  # noqa: F401
import torch
import torch.distributed as dist


CASE_SECONDS = int(os.environ.get("SHW_CASE_SECONDS", "200"))


def meet(number):
    """A barrier that works after a failed case too: by the store, not by the process group."""
    store = dist.distributed_c10d._get_default_store()
    arrived = store.add(f"case/{number}", 1)
    if arrived == dist.get_world_size():
        store.set(f"case/{number}/all", "1")
    store.wait([f"case/{number}/all"])


def main():
    folder, only = Path(sys.argv[1]), sys.argv[2:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for number, case in enumerate(cases.of_world_size(dist.get_world_size(), only)):
        faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)  # a case that hangs says where
        torch.manual_seed(number)
        place = folder / case.__name__
        if dist.get_rank() == 0:
            place.mkdir(parents=True, exist_ok=True)
        meet(f"{number}/begin")
        begin = time.monotonic()
        try:
            case(place)
            outcome = "ok"
        except BaseException:
            outcome = traceback.format_exc(limit=-6)
        print(json.dumps({"case": case.__name__, "outcome": outcome, "seconds": round(time.monotonic() - begin, 2)}), flush=True)
        meet(f"{number}/end")
    faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
