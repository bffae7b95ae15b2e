# SPDX-License-Identifier: Apache-2.0
"""A group of one rank in an environment where something is wrong with the plugin. Prints what carries a save, why, and what
was logged.

Usage: fallback_rank.py FOLDER
"""
import json
import logging
import sys

import shardwright.torch
import torch
import torch.distributed as dist


class Records(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def main():
    records = Records()
    logging.getLogger("shardwright").addHandler(records)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    report = shardwright.torch.save({"w": torch.ones(2)}, f"{sys.argv[1]}/p")
    shardwright.torch.save({"w": torch.ones(2)}, f"{sys.argv[1]}/q", process_group=dist.new_group([0]))
    in_use = shardwright.torch.collective_in_use()
    print(json.dumps({"kind": in_use.kind, "reason": in_use.reason, "collective": report.collective, "logged": records.texts,
                      "torch": torch.__version__}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
