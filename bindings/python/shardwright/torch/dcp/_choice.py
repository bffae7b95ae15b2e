# SPDX-License-Identifier: Apache-2.0
"""Which way a save or load takes: by the library itself (_direct), or step by step where something of the caller's has to be
asked in between (_by_steps): another planner, overridden methods, another writer or reader.
"""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch.distributed as dist
from torch.distributed.checkpoint import default_planner as original

from ...errors import InvalidArgumentError
from ._direct import Members
from ._place import Place
from ._fsspec import is_url
from .filesystem import FileSystemReader, FileSystemWriter
from .fsspec_filesystem import FsspecReader, FsspecWriter
from ._steps import Steps
from .planner import DefaultLoadPlanner, DefaultSavePlanner

FORMATS = ("torch-dcp", "native")
_SAVE_PLANNERS = (DefaultSavePlanner, original.DefaultSavePlanner)
_LOAD_PLANNERS = (DefaultLoadPlanner, original.DefaultLoadPlanner)


class NoStorageError(InvalidArgumentError, RuntimeError):
    """Neither checkpoint_id nor storage says where the checkpoint lies."""


def members_of(process_group: dist.ProcessGroup | None, no_dist: bool) -> Members:
    """Who takes part: one rank alone where torch.distributed is not in use."""
    return Members(process_group, no_dist or not (dist.is_available() and dist.is_initialized()))


def group_of(members: Members) -> dist.ProcessGroup | None:
    """The process group; None = one rank alone."""
    return None if members.alone else members.group or dist.group.WORLD


def steps_of(members: Members, coordinator_rank: int = 0) -> Steps:
    """Steps of the members together. Collective."""
    return Steps(group_of(members), coordinator_rank, members.use)


def storage_of(storage: Any, checkpoint_id: str | os.PathLike[str] | None, reader: bool) -> Any:
    """The writer or reader of a call: the one that was given, at `checkpoint_id` if that is given, too; else one of ours."""
    if storage is not None:
        if checkpoint_id is not None:
            storage.reset(checkpoint_id)
        return storage
    if not checkpoint_id:
        raise NoStorageError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.",
                             {"parameter": "checkpoint_id"})
    remote = is_url(checkpoint_id)
    if not remote and "://" in os.fspath(checkpoint_id) and not isinstance(checkpoint_id, os.PathLike):
        raise NoStorageError("Cannot detect which StorageReader or StorageWriter to use. Please specify the "
                             f"storage_reader/storage_writer: fsspec does not know {checkpoint_id!r}, or is not installed",
                             {"parameter": "checkpoint_id"})
    if reader:
        return (FsspecReader if remote else FileSystemReader)(checkpoint_id)
    return (FsspecWriter if remote else FileSystemWriter)(checkpoint_id)


def _is_plain(planner: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a planner is a default one, with nothing overridden, that flattens."""
    if planner is None:
        return True
    if type(planner) not in kinds or any(callable(getattr(type(planner), name, None)) for name in vars(planner)):
        return False
    return bool(planner.flatten_state_dict and planner.flatten_sharded_tensors)


def place_of_save(writer: Any, planner: Any, use_collectives: bool) -> Place | None:
    """Where the library saves by itself; None where the save goes step by step."""
    ours = type(writer) in (FileSystemWriter, FsspecWriter) and _untouched(writer) and writer.is_plain
    return writer.place if ours and use_collectives and _is_plain(planner, _SAVE_PLANNERS) else None


def place_of_load(reader: Any, planner: Any) -> Place | None:
    """Where the library loads from by itself; None where the load goes step by step."""
    ours = type(reader) in (FileSystemReader, FsspecReader) and _untouched(reader) and reader.is_plain
    return reader.place if ours and _is_plain(planner, _LOAD_PLANNERS) else None


def _untouched(storage: Any) -> bool:
    return not any(callable(getattr(type(storage), name, None)) for name in vars(storage))


def save_options(writer: Any, planner: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the library's save: those of the call, then what writer and planner say."""
    found: dict[str, Any] = {"preset": "torch", **writer.save_options}
    if planner is not None:
        found["owner"] = "lowest_rank" if planner.dedup_save_to_lowest_rank else getattr(planner, "owner", "exact")
    found |= options
    wanted = str(found.get("format", "torch-dcp")).replace("_", "-")
    if wanted not in FORMATS:
        raise InvalidArgumentError(f"format {wanted!r} is none of {', '.join(FORMATS)}", {"parameter": "format"})
    found["format"] = wanted
    return found


def check_stepwise(options: Mapping[str, Any], what: str, described: bool) -> None:
    """Options of the library are refused where a save or load goes step by step: nothing would heed them. `described`: False
    where the state is why it does."""
    left = sorted(set(options) - {"format"})
    if str(options.get("format", "torch-dcp")).replace("_", "-") != "torch-dcp":
        left.append("format")
    if left:
        why = ("with a planner, writer or reader of its own, or without collectives," if described else "of tensors with several "
               "local shards, quantised ones, or ones that make their own items (__create_write_items__)")
        raise InvalidArgumentError(f"{', '.join(left)}: a {what} {why} goes item by item and takes no such option",
                                   {"parameter": left[0]})


class Stored(NamedTuple):
    """How objects are read."""

    trusted: bool
    allow_types: tuple[Any, ...]
