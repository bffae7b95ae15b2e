# SPDX-License-Identifier: Apache-2.0
"""Saving state dicts: torch's functions, done by shardwright."""
from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Mapping
from typing import Any, Literal, TypedDict, Unpack

import torch.distributed as dist
from torch.distributed.checkpoint import state_dict_saver as _original
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import SavePlanner
from torch.distributed.checkpoint.staging import AsyncStager
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType, AsyncSaveResponse
from torch.distributed.checkpoint.storage import StorageWriter
from typing_extensions import deprecated

from ..._options import KindRules
from . import _async, _choice, _saving
from ._positions import second_by_position

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


class Options(TypedDict, total=False):
    """What a save takes beyond torch's arguments, where the library does it: the default planner, and a path or a writer of
    ours. docs/save-and-load.md says what they do."""

    format: Literal["torch-dcp", "native"]
    kind: KindRules | None
    owner: Literal["balanced", "lowest_rank", "exact"]
    overwrite: Literal["replace", "refuse"]
    durability: Literal["full", "none"]
    digests: Any
    memory_budget: int
    threads: int
    deadline: float | None
    keep_generations: int
    file_mode: int
    metadata: Mapping[str, str] | None
    trace_path: Any
    priority: Literal["normal", "background"]


@second_by_position("storage_writer")
def save(state_dict: Mapping[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None,
         storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
         process_group: dist.ProcessGroup | None = None, no_dist: bool = False, use_collectives: bool = True,
         verify_replicas: Literal["warn", "error", "off"] = "warn", **options: Unpack[Options]) -> Metadata:
    """Saves the states of all ranks as one checkpoint; returns when it is complete and durable. Called by every rank.

    Args:
        state_dict: nested mapping of tensors, DTensors, ShardedTensors and other values; of a value with `state_dict` and
            `load_state_dict` its state is saved.
        checkpoint_id: a path, or a URL for which fsspec has a file system (`s3://`, `msc://`, ...).
        storage_writer, planner: ours, torch's or your own; None = ours. With one of your own, or with methods that are
            overridden, its methods are called step by step.
        process_group: the ranks that save; None = all.
        no_dist: this process saves what it holds, by itself.
        use_collectives: False = each rank leaves an index of its own, and nothing is compared or saved once.
        verify_replicas: what to do where ranks hold different plain values (random states, counters) under one name: "warn"
            writes one of them, as torch does, and says how to declare it; "error" refuses; "off" does not compare.
        options: format ("torch-dcp", which torch reads, or "native"), kind, durability and what Options lists.
    Returns torch's Metadata; it is read from the checkpoint when it is first looked at.
    Raises CheckpointError on all ranks: torch's CheckpointException, an Exception and a ShardwrightError.
    """
    members = _choice.members_of(process_group, no_dist)
    if members.alone:
        _saving.warn_of_one_process(3)
    writer = _choice.storage_of(storage_writer, checkpoint_id, reader=False)
    call = _saving.checked(_saving.SaveCall(writer, planner, members, use_collectives, verify_replicas, dict(options)))
    return _saving.run(_saving.without_stateful(state_dict), call)


def async_save(state_dict: Mapping[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None,
               storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
               process_group: dist.ProcessGroup | None = None,
               async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
               async_stager: AsyncStager | None = None, no_dist: bool = False, use_collectives: bool = True,
               verify_replicas: Literal["warn", "error", "off"] = "warn", **options: Unpack[Options]
               ) -> concurrent.futures.Future[Metadata] | AsyncSaveResponse:
    """Saves in the background; returns when the state has been copied, after which it may change.

    One save at a time: a call waits until the save before it has ended. Ranks speak over a group of their own, so training
    goes on with its collectives.

    Args:
        async_checkpointer_type: THREAD, or PROCESS: a daemon process per rank, which the first call starts, plans and writes.
        async_stager: copies the state; None = the library does, into memory that it keeps for the next save. A stager that
            gives a Future makes the call return at once.
        others: as for save.
    Returns a Future of what save returns, or with such a stager an AsyncSaveResponse: two futures, for the copy and for the
    save. Failures come out of the futures.
    """
    members = _choice.members_of(process_group, no_dist)
    _async.check_cpu_backend(members)
    writer = _choice.storage_of(storage_writer, checkpoint_id, reader=False)
    call = _saving.checked(_saving.SaveCall(writer, planner, members, use_collectives, verify_replicas, dict(options)))
    stager = async_stager
    if stager is None and isinstance(storage_writer, AsyncStager) and call.place is None:
        stager = storage_writer  # as torch does
    process = async_checkpointer_type == AsyncCheckpointerType.PROCESS
    return _async.start(_saving.without_stateful(state_dict), call, stager, process)


@deprecated("`save_state_dict` is deprecated and will be removed in future versions. Please use `save` instead.",
            category=FutureWarning)
def save_state_dict(state_dict: Mapping[str, Any], storage_writer: StorageWriter,
                    process_group: dist.ProcessGroup | None = None, coordinator_rank: int = 0, no_dist: bool = False,
                    planner: SavePlanner | None = None) -> Metadata:
    """The name of `save` before torch 2.2."""
    storage_writer.reset()
    return _save_state_dict(state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner)


def _save_state_dict(state_dict: Mapping[str, Any], storage_writer: StorageWriter, process_group: dist.ProcessGroup | None = None,
                     coordinator_rank: int = 0, no_dist: bool = False, planner: SavePlanner | None = None,
                     use_collectives: bool = True) -> Metadata:
    """What `save` does with a state without Stateful values."""
    members = _choice.members_of(process_group, no_dist)
    call = _saving.SaveCall(storage_writer, planner, members, use_collectives, "warn", {}, coordinator_rank)
    return _saving.run(dict(state_dict), call)


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
