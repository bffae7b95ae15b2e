# SPDX-License-Identifier: Apache-2.0
"""Communicators over NCCL, of the plugin "cuda" (libshardwright_cuda.so). torch's own ones are not used: NCCL needs of a process
group its ranks alone, which meet in the store of torch.distributed for an id."""
from __future__ import annotations

import json
from collections.abc import Mapping

import torch
import torch.distributed as dist

from ..context import shared
from ..errors import ShardwrightError, UnavailableError
from ..hsdp import Communicator, PluginCommunicator
from ._own_groups import is_own
from ._rendezvous import rendezvous
from ._side import DEFAULT_SECONDS, default_store, name_of
from ._waiting import interruptible

PLUGIN = "cuda"


def has_nccl(group: dist.ProcessGroup | None) -> bool:
    """Whether tensors on GPUs travel over NCCL in a group; in those that shardwright has made as in the default one."""
    asked = dist.group.WORLD if group is not None and is_own(group) else group
    if asked is None:
        return False
    try:
        return str(asked._get_backend(torch.device("cuda")).name()).startswith("nccl")
    except RuntimeError:  # it has none for GPUs
        return False


def open_communicator(group: dist.ProcessGroup, use: str, seconds: float | None, device: int) -> Communicator:
    """This rank's end for tensors on its GPU of that number. Collective over the ranks of the group; a signal is seen meanwhile.
    UnavailableError where NCCL cannot be had, on all ranks where that is rank 0."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    limit = DEFAULT_SECONDS if seconds is None else seconds
    try:
        _, answer = rendezvous(default_store(), f"shardwright/nccl/{use}/{name_of(group)}", rank, size, limit, decide=_new_id)
    except dist.DistError as e:
        raise UnavailableError(f"rank {rank}: the ranks did not meet for NCCL: {e}", retryable=True) from e
    found = json.loads(answer)
    if found["error"]:
        raise UnavailableError(f"rank 0 has no id of NCCL: {found['error']}", {"rank": "0"})
    text = json.dumps({"id": found["id"], "rank": rank, "size": size, "device": device, "seconds": limit})
    made: Communicator = interruptible(lambda: PluginCommunicator(PLUGIN, text, context=shared()))
    return made


def _new_id(_: Mapping[int, str]) -> str:
    """On rank 0: an id, or why there is none."""
    try:
        return json.dumps({"id": shared().ask_plugin(PLUGIN, json.dumps({"ask": "nccl_id"})), "error": ""})
    except ShardwrightError as e:
        return json.dumps({"id": "", "error": str(e)})
