# SPDX-License-Identifier: Apache-2.0
"""One of two ranks: rank_worker.py RANK FOLDER runs every case of rank_cases.py and prints one JSON line per case.

A rank ends at its first failure, so that the other one, which may wait for it, ends soon, too.
"""
import faulthandler
import json
import sys
import traceback
from datetime import timedelta
from pathlib import Path

import rank_cases
import torch
import torch.distributed as dist

WORLD_SIZE = 2
CASE_SECONDS = 100


def main():
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), WORLD_SIZE)
    store.set_timeout(timedelta(seconds=CASE_SECONDS))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD_SIZE, timeout=timedelta(seconds=CASE_SECONDS))
    for case in rank_cases.CASES:
        faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)  # a case that hangs says where
        place = folder / case.__name__
        place.mkdir(exist_ok=True)
        outcome = "ok"
        try:
            case(place, rank)
            dist.barrier()
        except BaseException:
            outcome = traceback.format_exc(limit=-6)
        print(json.dumps({"case": case.__name__, "outcome": outcome}), flush=True)
        if outcome != "ok":
            sys.exit(1)
    faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
