# SPDX-License-Identifier: Apache-2.0
"""One save or load in this process: one_call OP PATH PARAMS_JSON; prints what was resident, and the peak, as JSON."""
import json
import sys
import time

import shardwright
from driver import states
from driver.memory import forget_peak, peak_bytes


def main():
    op, path, params = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    state = states.arrays(params)
    forget_peak()
    before, cpu, start = peak_bytes(), time.process_time(), time.perf_counter()
    if op == "save":
        shardwright.save(state, path, memory_budget=params["budget"])
    else:
        shardwright.load(path, into=state, memory_budget=params["budget"])
    print(json.dumps({"s": time.perf_counter() - start, "cpu_s": time.process_time() - cpu,
                      "resident_before_bytes": before, "rss_peak_bytes": peak_bytes()}))


if __name__ == "__main__":
    main()
