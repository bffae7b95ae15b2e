#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A transformer of 24 million parameters trains for 20 steps on 2 x 2 processes under shardwright's fully_shard, under torch's,
and in one process that takes the four micro-batches in the order in which the first adds them. The first and the last end
with equal bits. Then what was saved on four processes is continued on three, again with the bits of one process.

    python examples/torch_hsdp/demo.py FOLDER [--small]

Ends with a table, and with status 0 where all of that held.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import shardwright.torch
import torch

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "real_model"))
from launch import free_port  # noqa: E402

SECONDS = 600
LOSS_APART_MAX = 1e-4  # relative, of torch's sums in another order


class Failed(Exception):
    """A rank ended with an error."""


def train(kind, ranks, folder, name, *arguments):
    """What rank 0 printed: (losses by step, its last line)."""
    port, processes, logs = free_port(), [], []
    for rank in range(ranks):
        env = os.environ | {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                            "OMP_NUM_THREADS": "1"}
        logs.append(folder / f"{name}-{rank}.log")
        with open(logs[-1], "wb") as log:
            processes.append(subprocess.Popen([sys.executable, str(HERE / "train.py"), kind, "--save", str(folder / name),
                                               "--fallback", str(HERE.parents[1] / "LICENSE"), *arguments], env=env, stderr=log,
                                              stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL, text=True))
    try:
        text, _ = processes[0].communicate(timeout=SECONDS)
        codes = [each.wait(timeout=SECONDS) for each in processes]
    finally:
        for each in processes:
            each.kill()
    if any(codes):
        worst = next(log.read_text(errors="replace") for log, code in zip(logs, codes, strict=True) if code)
        raise Failed(f"{name}: exit codes {codes}\n{worst[-3000:]}")
    *steps, last = map(json.loads, text.splitlines())
    return {each["step"]: each["loss"] for each in steps}, last


def tensors(tree, path=()):
    """Every tensor of a nested dict by its path."""
    if isinstance(tree, torch.Tensor):
        return {path: tree}
    found = {}
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        found |= tensors(value, (*path, key))
    return found


def equal_share(one, two):
    """Share of elements with equal bits in parameters and optimizer state of two checkpoints."""
    left, right = (tensors(shardwright.torch.load(path)) for path in (one, two))
    if left.keys() != right.keys():
        raise Failed(f"{one} and {two} hold other tensors: {sorted(map(str, left.keys() ^ right.keys()))[:3]}")
    bits = [(value.contiguous().flatten().view(torch.int32), right[path].contiguous().flatten().view(torch.int32))
            for path, value in left.items()]
    return sum(int((a == b).sum()) for a, b in bits) / sum(a.numel() for a, _ in bits)


def row(name, losses, last, share):
    print(f"{name:32}  {losses[max(losses)]:.6f}  {share:>9}  {last['seconds_per_step']:6.3f} s  {last['peak_bytes'] / 2**20:6.0f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small", action="store_true", help="a model of 0.1 million parameters")
    options = parser.parse_args()
    folder, small = options.folder, ["--small"] if options.small else []
    folder.mkdir(parents=True, exist_ok=True)
    four = ["--shape", "2", "2", "--steps", "20", *small]
    more = ["--shape", "3", "--begin", "20", "--steps", "5", "--resume", str(folder / "ours"), *small]
    runs = {"ours": train("ours", 4, folder, "ours", *four),
            "fsdp2": train("fsdp2", 4, folder, "fsdp2", *four),
            "alone": train("alone", 1, folder, "alone", *four),
            "ours-3": train("ours", 3, folder, "ours-3", *more),
            "alone-3": train("alone", 1, folder, "alone-3", *more)}
    shares = {name: equal_share(folder / name, folder / ("alone-3" if name.endswith("-3") else "alone")) for name in runs}
    ours, theirs = runs["ours"][0], runs["fsdp2"][0]
    apart = max(abs(ours[step] - theirs[step]) / theirs[step] for step in theirs)
    names = {"ours": "shardwright, 2 x 2", "fsdp2": "FSDP2, 2 x 2", "alone": "one process, 4 micro-batches",
             "ours-3": "continued by shardwright on 3", "alone-3": "continued by one process, 3"}
    print(f"{runs['ours'][1]['parameters']:,} parameters\n{'':32}  {'loss':8}  {'equal':>9}  {'step':>8}  {'peak of rank 0':>10}")
    for name, (losses, last) in runs.items():
        row(names[name], losses, last, f"{shares[name]:.2%}")
    print(f"losses differ from those of FSDP2 by at most {apart:.1e} of them")
    return 0 if shares["ours"] == shares["ours-3"] == 1 and apart <= LOSS_APART_MAX else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failed:
        sys.exit(str(failed))
