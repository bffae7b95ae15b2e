# SPDX-License-Identifier: Apache-2.0
"""Loading state dicts: torch's functions, done by shardwright."""
from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any, Literal, TypedDict, Unpack

import torch.distributed as dist
from torch.distributed.checkpoint import state_dict_loader as _original
from torch.distributed.checkpoint.planner import LoadPlanner
from torch.distributed.checkpoint.storage import StorageReader
from typing_extensions import deprecated

from . import _choice, _direct
from ._by_steps import Load
from ._positions import second_by_position
from ._saving import is_stateful, without_stateful
from .filesystem import FileSystemReader
from .planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner

__all__ = ["load", "load_state_dict"]


class Options(TypedDict, total=False):
    """What a load takes beyond torch's arguments, where the library does it: the default planner, and a path or a reader of
    ours. docs/save-and-load.md says what they do."""

    verify: Literal["on_read", "off"]
    read_path: Literal["auto", "direct", "buffered"]
    exchange: Literal["auto", "off", "always"]
    missing: Literal["error", "report"]
    unexpected: Literal["report", "error"]
    cast: Literal["allow", "error"]
    strict: Any
    memory_budget: int
    threads: int
    deadline: float | None
    trace_path: Any


@second_by_position("storage_reader")
def load(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None,
         storage_reader: StorageReader | None = None, planner: LoadPlanner | None = None,
         process_group: dist.ProcessGroup | None = None, no_dist: bool = False, trust_pickles: bool = False,
         allow_types: Iterable[Any] = (), **options: Unpack[Options]) -> None:
    """Fills a state in place from a checkpoint of any mesh. Called by every rank.

    Args:
        state_dict: nested mapping. Tensors are filled where they lie, other values are replaced; a value with `state_dict`
            and `load_state_dict` takes its state by them. Tensors on the meta device get memory.
        checkpoint_id, process_group, no_dist: as for save. Checkpoints of all formats that the library opens can be loaded.
        storage_reader, planner: ours, torch's or your own; None = ours.
        trust_pickles: stored objects may run code of the checkpoint.
        allow_types: classes of your program that stored objects may use.
        options: missing, unexpected, cast (default "allow": casts are logged) and what Options lists.
    Raises CheckpointError on all ranks: torch's CheckpointException, an Exception, a ShardwrightError, and the type of its
    cause: a RuntimeError for a key that is not stored, a ValueError for another shape.
    """
    members = _choice.members_of(process_group, no_dist)
    if members.alone:
        warnings.warn("torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to load in a single "
                      "process.", stacklevel=3)
    reader = _choice.storage_of(storage_reader, checkpoint_id, reader=True)
    keys = sorted(state_dict)
    values = without_stateful({key: state_dict[key] for key in keys})
    _load(values, reader, planner, members, _choice.Stored(trust_pickles, tuple(allow_types)), dict(options))
    for key in keys:
        if key in state_dict and is_stateful(state_dict[key]):
            state_dict[key].load_state_dict(values[key])
        elif key in state_dict:
            state_dict[key] = values[key]


def _load(tree: dict[str, Any], reader: Any, planner: Any, members: _direct.Members, stored: _choice.Stored,
          options: dict[str, Any], coordinator_rank: int = 0) -> None:
    place = None if coordinator_rank else _choice.place_of_load(reader, planner)
    if isinstance(planner, DefaultLoadPlanner):
        stored = _choice.Stored(stored.trusted or planner.trust_pickles, (*stored.allow_types, *planner.allow_types))
    each = isinstance(reader, FileSystemReader) and _of_single_ranks(reader, members)
    if isinstance(reader, FileSystemReader):
        reader.merges_ranks = not each
    if place is not None and not each:
        partial = planner is not None and planner.allow_partial_load
        noting = planner if isinstance(planner, DefaultLoadPlanner) else None
        if _direct.load(tree, place, members, _direct.LoadWishes(noting, partial, *stored, options)):
            return
    _choice.check_stepwise(options, "load", place is None)
    if planner is None:
        planner = DefaultLoadPlanner(trust_pickles=stored.trusted, allow_types=stored.allow_types)
    Load(tree, reader, planner, _choice.steps_of(members, coordinator_rank)).run()


def _of_single_ranks(reader: Any, members: _direct.Members) -> bool:
    """Whether there is an index of each rank, which that one alone wrote: then each gets its own values back. All ranks look
    for all of them, so they come to one answer. Other numbers of ranks see what all of those left together."""
    fs, path_of = reader.fs, reader._get_metadata_path
    if fs.exists(path_of()) or fs.exists(path_of(members.size)):
        return False
    return all(fs.exists(path_of(rank)) for rank in range(members.size))


@deprecated("`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.",
            category=FutureWarning)
def load_state_dict(state_dict: dict[str, Any], storage_reader: StorageReader, process_group: dist.ProcessGroup | None = None,
                    coordinator_rank: int = 0, no_dist: bool = False, planner: LoadPlanner | None = None) -> None:
    """The name of `load` before torch 2.2."""
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict(state_dict: dict[str, Any], storage_reader: StorageReader, process_group: dist.ProcessGroup | None = None,
                     coordinator_rank: int = 0, no_dist: bool = False, planner: LoadPlanner | None = None) -> None:
    """What `load` does with a state without Stateful values."""
    members = _choice.members_of(process_group, no_dist)
    _load(state_dict, storage_reader, planner, members, _choice.Stored(False, ()), {}, coordinator_rank)


def _load_state_dict_from_keys(keys: set[str] | str | None = None, *, checkpoint_id: str | os.PathLike[str] | None = None,
                               storage_reader: StorageReader | None = None, process_group: dist.ProcessGroup | None = None,
                               no_dist: bool = False, trust_pickles: bool = False, allow_types: Iterable[Any] = ()
                               ) -> dict[str, Any]:
    """What a checkpoint holds, or those entries of it whose name, or a dotted prefix of whose path, is in `keys`; whole
    tensors in host memory, on each rank."""
    members = _choice.members_of(process_group, no_dist)
    reader = _choice.storage_of(storage_reader, checkpoint_id, reader=True)
    found: dict[str, Any] = {}
    planner = _EmptyStateDictLoadPlanner({keys} if isinstance(keys, str) else keys, trust_pickles=trust_pickles,
                                         allow_types=allow_types)
    _load(found, reader, planner, members, _choice.Stored(False, ()), {})
    return found


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
