# SPDX-License-Identifier: Apache-2.0
"""One durable save of 1 GiB (512 MiB when QUICK) in 100 float32 tensors, against the direct-write floor of the same
round.

torch.save and the safetensors package write with one thread, the others with one and with two. Equal durability: every contender's time ends when files and directories are synced.
"""
TENSORS = 100


def variants(quick):
    size = (512 if quick else 1024) << 20
    line = {"bytes": size, "tensors": TENSORS, "check": "read back", "fsync": "files+dir"}
    threads = [2] if quick else [1, 2]
    contenders = [("shardwright", threads), ("shardwright_safetensors", threads), "torch_save_fsync", "safetensors_fsync",
                  ("torch_dcp", threads)]
    return [{"name": "durable", "op": "save", "params": {"bytes": size, "tensors": TENSORS}, "line": line,
             "floor": "dwrite", "floor_bytes": size, "reps": 3 if quick else 7, "contenders": contenders}]
