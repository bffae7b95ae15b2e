# SPDX-License-Identifier: Apache-2.0
"""One rank: rank_worker.py MODULE WORLD_SIZE FOLDER RANK runs every case of a module and prints one JSON line per case.

A rank ends at its first failure, so that others, which may wait for it, end soon, too.
"""
import faulthandler
import importlib
import json
import sys
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

CASE_SECONDS = 100

if __name__ == "__mp_main__":
    # The worker that megatron-core's persistent queue spawns counts devices to choose its own.
    torch.cuda.device_count, torch.cuda.set_device = lambda: 1, lambda _: None


def main():
    module, world_size, folder, rank = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), world_size)
    store.set_timeout(timedelta(seconds=CASE_SECONDS))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=timedelta(seconds=CASE_SECONDS))
    for case in importlib.import_module(module).CASES:
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
