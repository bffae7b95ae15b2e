# SPDX-License-Identifier: Apache-2.0
"""PyTorch: state dicts with plain tensors and DTensors on any mesh, over the caller's process group.

    shardwright.torch.save({"model": model_state, "optimizer": optimizer_state, "step": 100}, path)
    shardwright.torch.load(path, into=state)        # in place; any other mesh and placement

Which boxes of a DTensor a rank holds follows from mesh and placements by arithmetic; no rank asks another. Tensors that
are not DTensors count as replicas: compared, and written once. Host tensors are read and filled where they lie; those on
a device pass through host memory.
"""
from __future__ import annotations

import contextlib
import importlib
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack, overload

import torch
import torch.distributed as dist
import torch.utils.dlpack

from .. import _options, calls
from .._options import LoadOptions, SaveOptions
from .._progress import Listener
from ..collective import Collective
from ..context import Context
from ..errors import ShardwrightError
from ..jobs import Job
from ..report import Report
from ..state import State, Stateful
from ..tensor import Tensor
from ._choice import CollectiveChoice, collective_choice, collective_over, meet, must_renew
from ._groups import agree
from ._items import write_digests, write_items
from ._leaves import LeafConverter

if TYPE_CHECKING:
    from .hsdp import (CPUOffloadPolicy, HSDPModule, MixedPrecisionPolicy, OffloadPolicy, RaggedTensor, UnshardHandle,
                       fully_shard, get_model_state_dict, hsdp_sync_stream, register_fsdp_forward_method, set_model_state_dict,
                       share_comm_ctx)

__all__ = ["CPUOffloadPolicy", "CollectiveChoice", "HSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "RaggedTensor", "UnshardHandle",
           "collective", "collective_in_use", "fence", "fully_shard", "get_model_state_dict", "hsdp_sync_stream", "load",
           "load_async", "prepare", "register_fsdp_forward_method", "save", "save_async", "set_model_state_dict",
           "share_comm_ctx", "write_digests", "write_items"]


def __getattr__(name: str) -> Any:
    """Names of shardwright.torch.hsdp, which asks for more of torch than saves and loads do."""
    if name in __all__:
        return getattr(importlib.import_module(".hsdp", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def collective(process_group: dist.ProcessGroup | None = None) -> Collective | None:
    """This rank's end of a process group (None = the default one) for calls of shardwright itself; None where
    torch.distributed is not in use. It must be made on all ranks, once per call that uses it."""
    group = _group_of(process_group)
    return None if group is None else meet(group, collective_over(group, "calls", None)[0], None)


def collective_in_use(process_group: dist.ProcessGroup | None = None) -> CollectiveChoice | None:
    """Which collective carries calls over a process group (None = the default one), and why it is not that of
    libshardwright_torch.so; None where torch.distributed is not in use. Collective before the first call over the group.
    The variable SHW_TORCH_COLLECTIVE chooses: "c10d", "python", or "auto" for the first one that all ranks have, over which
    ranks of one machine only meet."""
    group = _group_of(process_group)
    return None if group is None else collective_choice(group)


def _group_of(process_group: dist.ProcessGroup | None) -> dist.ProcessGroup | None:
    if not (dist.is_available() and dist.is_initialized()):
        return None
    return process_group if process_group is not None else dist.group.WORLD


class _Prepared:
    """State and collective of one call. Before anything else all ranks agree that each could take its state: a rank
    that just raised would leave the others waiting, or meet their call with its next one."""

    def __init__(self, tree: Any, process_group: dist.ProcessGroup | None, *, writable: bool, background: bool,
                 objects: str, options: Mapping[str, Any], targets: Callable[[int], State] | None = None,
                 alone: bool = False, use: str = "calls") -> None:
        """`tree`: what was given to the call; `targets`: makes the State of a rank, where nothing was given; `alone`: one
        rank, whatever groups there are; `use`: the side group of the caller's thread, over which ranks agree (`agreement`)."""
        self.collective: Collective | None = None
        self.agreement: Collective | None = None
        self.leaves = LeafConverter(process_group, writable)
        group = None if alone else _group_of(process_group)
        problem: BaseException | None = None
        try:
            (_options.load_options if writable else _options.save_options)(options)
            rank = 0 if group is None else dist.get_rank(group)
            self.state = targets(rank) if targets else self._state_of(tree, rank, writable, objects)
        except BaseException as e:  # whatever it is, also an interrupt: the other ranks are told before it goes on
            problem = e
        try:
            if group is not None:
                self._open(group, problem, background, _limit_of(options), use)
        except BaseException:
            if problem is None:
                raise
        if problem is not None:  # also where telling it failed: the caller hears of what came first
            raise problem

    def _state_of(self, tree: Any, rank: int, writable: bool, objects: str) -> State:
        if isinstance(tree, State):
            state = tree
        else:
            with torch.no_grad():
                state = State(tree, writable=writable, rank=rank, objects=objects, convert=self.leaves.convert,
                              parts=self.leaves.parts, filled=self.leaves.copy_back)
        if writable:
            state.check_can_be_filled()
        else:
            state.check_can_be_saved()
        return state

    def _open(self, group: dist.ProcessGroup, problem: BaseException | None, background: bool,
              seconds: float | None, use: str) -> None:
        self.agreement = self.collective = agreement = _agreed(group, problem, seconds, use)
        if background:  # one rank alone may know that the group of earlier jobs has ended
            renew = must_renew(group, "background", agreement)
            background_end, _ = collective_over(group, "background", seconds, renew=renew)
            self.collective = meet(group, background_end, seconds)


def _agreed(group: dist.ProcessGroup, problem: BaseException | None, seconds: float | None, use: str) -> Collective:
    """The collective of a call, after all ranks agreed over it."""
    while True:
        end, missed_the_end = collective_over(group, use, seconds)
        try:
            end = meet(group, end, seconds)
            agree(end, problem)
            return end
        except ShardwrightError:
            if not missed_the_end():
                raise


def _limit_of(options: Mapping[str, Any]) -> float | None:
    """The deadline also holds for the way to the call."""
    deadline = options.get("deadline")
    return float(deadline) if isinstance(deadline, (int, float)) and deadline > 0 else None


def save(state: Mapping[Any, Any] | State | Stateful, path: Any, *, process_group: dist.ProcessGroup | None = None,
         storage: Any = None, objects: str = "json", progress: Listener | None = None,
         context: Context | None = None, **options: Unpack[SaveOptions]) -> Report:
    """Saves the states of all ranks as one checkpoint; returns when it is committed. Called by every rank of the group.

    Args:
        state: nested mapping of tensors, DTensors, shards, bytes, JSON values, and objects with state_dict and load_state_dict
            (modules among them); or one such object.
        path, storage, objects, progress, context, options: as for shardwright.save.
        process_group: transport of the call; None = the default group, or one rank without torch.distributed.
    Raises a ShardwrightError, the same kind on all ranks; what was at the path is then still there, whole.
    """
    made = _Prepared(state, process_group, writable=False, background=False, objects=objects, options=options)
    return calls.save(made.state, path, storage=storage, collective=made.collective, progress=progress, context=context,
                      **options)


def save_async(state: Mapping[Any, Any] | State | Stateful, path: Any, *, process_group: dist.ProcessGroup | None = None,
               storage: Any = None, objects: str = "json", progress: Listener | None = None,
               context: Context | None = None, **options: Unpack[SaveOptions]) -> Job:
    """Saves in the background, over a process group of its own that the first call makes, so that training goes on with
    its collectives. Tensors may change after Job.wait_staged, for which `fence` lets optimizers wait. Arguments as for save."""
    made = _Prepared(state, process_group, writable=False, background=True, objects=objects, options=options)
    return calls.save_async(made.state, path, storage=storage, collective=made.collective, progress=progress, context=context,
                            **options)


def prepare(state: Mapping[Any, Any] | State | Stateful, *, process_group: dist.ProcessGroup | None = None,
            objects: str = "json") -> None:
    """Makes what the first save_async would make before the tensors may change: the memory into which it copies such a state, and
    the process groups of saves in the background, so that it is as fast as later ones. Called by every rank of the group;
    arguments as for save. Raises what save would about the state, on all ranks, and ResourceExhaustedError on a rank that has
    not so much memory."""
    def described(rank: int) -> State:
        # Tensors on devices are stood for by empty ones, as those that a load fills.
        leaves = LeafConverter(process_group, True)
        return state if isinstance(state, State) else State(state, rank=rank, objects=objects, convert=leaves.convert,
                                                            parts=leaves.parts)

    group = _group_of(process_group)
    made = _Prepared(state, process_group, writable=False, background=True, objects=objects, options={}, targets=described)
    calls.prepare_of(made.state, 0 if group is None else dist.get_rank(group))


def fence(job: Job, *optimizers: torch.optim.Optimizer) -> None:
    """Lets the next step of each optimizer wait until a save no longer reads the tensors, so that forward and backward run
    meanwhile: with `hold` nothing is copied at all,

        job = shardwright.torch.save_async(state, path, hold=True)
        shardwright.torch.fence(job, optimizer)

    Only steps wait; whatever else writes into the tensors of the state has to call job.wait_staged itself. A save that fails
    ends the wait; its failure stays with the job.
    """
    for optimizer in optimizers:
        if optimizer not in _fenced:
            optimizer.register_step_pre_hook(_wait_for_fenced)
        _fenced.setdefault(optimizer, []).append(job)


# Jobs that the next step waits for. The hooks stay: a hook cannot go while hooks run.
_fenced: weakref.WeakKeyDictionary[torch.optim.Optimizer, list[Job]] = weakref.WeakKeyDictionary()


def _wait_for_fenced(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    jobs = _fenced.get(optimizer, [])  # none of a copy
    while jobs:
        with contextlib.suppress(ShardwrightError):  # of the save, which its job tells
            jobs[0].wait_staged()
        del jobs[0]


@overload
def load(path: Any, into: None = None, *, process_group: dist.ProcessGroup | None = None, storage: Any = None,
         trust_pickle: bool = False, allow_types: Iterable[Any] | None = None, progress: Listener | None = None,
         context: Context | None = None, **options: Unpack[LoadOptions]) -> dict[Any, Any]: ...


@overload
def load(path: Any, into: Mapping[Any, Any] | State | Stateful, *, process_group: dist.ProcessGroup | None = None,
         storage: Any = None, trust_pickle: bool = False, allow_types: Iterable[Any] | None = None,
         progress: Listener | None = None, context: Context | None = None,
         **options: Unpack[LoadOptions]) -> Report: ...


def load(path: Any, into: Mapping[Any, Any] | State | Stateful | None = None, *,
         process_group: dist.ProcessGroup | None = None, storage: Any = None, trust_pickle: bool = False,
         allow_types: Iterable[Any] | None = None, progress: Listener | None = None,
         context: Context | None = None, **options: Unpack[LoadOptions]) -> Report | dict[Any, Any]:
    """Fills a state in place from a checkpoint of any mesh, or reads everything. Called by every rank of the group.

    Args:
        into: nested mapping of tensors, DTensors, values and objects with state_dict and load_state_dict, or one such object;
            gives a Report. None gives a nested dict of whole tensors;
            of rank_local entries those of this rank.
        others: as for shardwright.load.
    """
    given: dict[str, Any] = {"trust_pickle": trust_pickle, "allow_types": allow_types, "progress": progress,
                             "context": context, **options}
    if into is None:
        return _load_all(path, process_group, storage, given, options)
    made = _Prepared(into, process_group, writable=True, background=False, objects="json", options=options)
    return calls.load(path, made.state, storage=storage, collective=made.collective, **given)


def load_async(path: Any, into: Mapping[Any, Any] | State | Stateful, *, process_group: dist.ProcessGroup | None = None,
               storage: Any = None, trust_pickle: bool = False, allow_types: Iterable[Any] | None = None,
               progress: Listener | None = None, context: Context | None = None,
               **options: Unpack[LoadOptions]) -> Job:
    """Fills a state in the background, over the process group of background saves. Job.result or Job.report must be
    called: it replaces values that are no tensors, fills tensors on devices and calls load_state_dict."""
    made = _Prepared(into, process_group, writable=True, background=True, objects="json", options=options)
    return calls.load_async(path, made.state, storage=storage, collective=made.collective, trust_pickle=trust_pickle,
                            allow_types=allow_types, progress=progress, context=context, **options)


def _load_all(path: Any, process_group: dist.ProcessGroup | None, storage: Any, given: dict[str, Any],
              options: Mapping[str, Any]) -> dict[Any, Any]:
    """Everything that this rank is given."""
    found: list[calls.Entries] = []

    def targets(rank: int) -> State:
        found.append(calls.Entries(path, storage, rank, options))
        return found[0].state

    made = _Prepared(None, process_group, writable=True, background=False, objects="json", options=options,
                     targets=targets)
    calls.load(path, made.state, storage=storage, collective=made.collective, **given)
    return {key: _with_torch_tensors(value) for key, value in found[0].tree().items()}


def _with_torch_tensors(value: Any) -> Any:
    """torch tensors over the same bytes; dtypes that torch lacks stay as they are."""
    if isinstance(value, Tensor):
        try:
            return torch.utils.dlpack.from_dlpack(value)
        except (BufferError, RuntimeError):
            return value
    if isinstance(value, dict):
        return {key: _with_torch_tensors(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_torch_tensors(inner) for inner in value]
    return value
