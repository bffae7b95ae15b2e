# SPDX-License-Identifier: Apache-2.0
"""Both packages that save sharded state dicts, and states as their descriptors.

megatron-core runs on processors here, so two functions of CUDA that it calls are replaced.
"""
import os
import sys
import warnings

from driver.contender import Skip

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def ours():
    import shardwright
    from shardwright.torch import megatron
    return megatron, {"shardwright": shardwright.__version__}


def theirs(threads):
    """dist_checkpointing, its strategies and its queues, and the versions. `threads`: its writers are threads, as in 0.19;
    0.16 forks, and the fork of a process with threads may wait for ever."""
    warnings.simplefilter("ignore")
    try:
        import torch
        from megatron.core import __version__, dist_checkpointing
        from megatron.core.dist_checkpointing.strategies import async_utils, filesystem_async, torch as strategies
    except ImportError as e:
        raise Skip(f"megatron-core not importable: {e}") from e
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_device = lambda: torch.device("cpu")
    if threads:
        sys.path.append(os.path.join(os.path.dirname(HERE), "examples", "megatron_gpt"))
        from cpu_megatron import WithoutFork
        for module in (async_utils, filesystem_async):
            module.mp = WithoutFork(module.mp)
    return dist_checkpointing, strategies, async_utils, {"torch": torch.__version__, "megatron-core": __version__}


def described(kind, tensors, layout, rank, world):
    """Name -> ShardedTensor of a package: this rank's rows or columns."""
    axis = {"rows": 0, "columns": 1}[layout]
    return {name: kind.from_rank_offsets(name, tensor, (axis, rank, world)) for name, tensor in tensors.items()}
