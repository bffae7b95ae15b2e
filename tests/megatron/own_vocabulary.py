# SPDX-License-Identifier: Apache-2.0
"""Words of the cases that run without megatron-core. Whoever imports this can no longer import megatron."""
import sys

import torch.distributed as dist
from shardwright.torch import megatron as ours
from states import data_of, emptied, state


class Blocker:
    """Lets no module of megatron be imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] == "megatron":
            raise ImportError(f"{name} is blocked")


sys.meta_path.insert(0, Blocker)


def full_state(rank, axis=0):
    return {"sharded": state(ours, rank, axis), "iteration": 7, "args": {"lr": 0.5, 3: (1, 2)}}


def expected(rank, axis=1):
    return {"sharded": data_of(state(ours, rank, axis)), "iteration": 7, "args": {"lr": 0.5, 3: (1, 2)}}


def made(path):
    path.mkdir(exist_ok=True)
    dist.barrier()
    return str(path)


def request(rank, axis=1):
    return {"sharded": emptied(state(ours, rank, axis))}


def failure_of(function):
    try:
        function()
    except Exception as e:
        return e
    raise AssertionError("it was to fail")


def same_on_all(error):
    """An error that all ranks have alike, in kind and text."""
    said = [None] * dist.get_world_size()
    dist.all_gather_object(said, (type(error).__name__, str(error)))
    assert len(set(said)) == 1, said
    return error
