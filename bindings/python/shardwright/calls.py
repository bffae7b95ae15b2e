# SPDX-License-Identifier: Apache-2.0
"""The calls most programs use: save, load, save_async, load_async, open.

Calls on the main thread run as a job that is waited for in slices, so that Ctrl-C ends them; on other threads, where no
signal arrives, they run in place. Neither holds the GIL.
"""
from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Unpack, overload

from . import _log, _options, _pickles
from . import context as contexts
from ._library import native
from ._options import LoadOptions, OpenOptions, SaveOptions
from ._progress import INTERVAL_SECONDS, Display, Listener, progress_of
from ._together import LOAD, SAVE, OnTheWay, on_main_thread
from .checkpoint import Checkpoint, path_argument
from .collective import handle_of as collective_handle
from .collective import rank_of
from .jobs import Job
from .report import Report
from .state import State, Stateful
from .storage import handle_of as storage_handle
from .tensor import allocate

_SLICE_SECONDS = 1.0  # after which records are handed on while a call waits


def _state_of(state: State | Stateful | Mapping[Any, Any], rank: int, objects: str) -> State:
    made = state if isinstance(state, State) else State(state, rank=rank, objects=objects)
    made.check_can_be_saved()
    return made


def _target_of(into: State | Stateful | Mapping[Any, Any], rank: int) -> State:
    target = into if isinstance(into, State) else State(into, writable=True, rank=rank)
    target.check_can_be_filled()
    return target


def _wait(job: Any, display: Display | None) -> Report:
    """Waits for a job and meanwhile hands on its records and tells how far it is. What a display raises cancels the job,
    which is waited to its end."""
    limit = _options.nanoseconds("wait", INTERVAL_SECONDS if display else _SLICE_SECONDS)
    try:
        while not native.shw_py_job_wait(job, limit, False):
            _log.drain()
            if display:
                display.show(progress_of(job))
        if display:
            display.show(progress_of(job))
        return Report(native.shw_job_report(job))
    except BaseException:
        native.shw_job_cancel(job)
        with contextlib.suppress(Exception):  # what it ends with gives way to what ended it, or is that itself
            native.shw_py_job_wait(job, -1, False)
        raise
    finally:
        if display:
            display.close()
        _log.drain()


def _call_context(given: contexts.Context | None, options: Mapping[str, Any]) -> contexts.Context:
    """The context of a call that runs as a job: the one that was given; else the shared one on the main thread, unless the call
    has a budget, for jobs of a context share its staging memory; else one of its own, for they run one after another."""
    if given is not None:
        return given
    budget = options.get("memory_budget", 0)
    return contexts.shared("calls") if on_main_thread() and not budget else contexts.Context(memory_budget=budget)


def save(state: State | Stateful | Mapping[Any, Any], path: Any, *, storage: Any = None, collective: Any = None,
         objects: str = "json", progress: Listener | None = None, context: contexts.Context | None = None,
         **options: Unpack[SaveOptions]) -> Report:
    """Saves a state and returns when the checkpoint is committed and durable.

    Args:
        state: nested mapping of tensors (numpy, torch, anything with DLPack or the buffer protocol), Shards, bytes and
            JSON values; or a State. Objects with state_dict and load_state_dict (Stateful) may stand in it, or for all of
            it: their states are saved. InvalidArgumentError for anything else.
        path: directory, or with `storage` a key prefix.
        storage: a Storage, or a Python object with the methods of HostStorage.
        collective: this rank's end of the transport; None = one rank.
        objects: "json" refuses other values, "pickle" stores them as pickles.
        progress: told how far the call is, at most ten times a second and once at the end: a function of one Progress, or a bar
            such as tqdm(unit="B") gives; `tqdm` itself makes one. What it raises cancels the call and comes out.
        context: whose threads, memory and machine are used; None = one that calls share.
        kind: who holds an entry, by name: pairs of a glob and "replicated" (all ranks hold the same), "sharded" (each holds
            a part) or "rank_local" (each has its own), as {"rng.*": "rank_local"}. The first glob that matches counts.
        options: overwrite, durability, digests, owner, verify_replicas, memory_budget, threads, deadline (seconds),
            keep_generations, file_mode, metadata, trace_path (file of a Chrome trace; rank 1 and above put
            ".rank-R" behind it), format, preset. docs/save-and-load.md lists their values.
    Raises a ShardwrightError; what was at the path is then still there, whole.
    """
    members = collective_handle(collective)
    with OnTheWay(SAVE, collective, members, background=False):
        display = None if progress is None else Display(progress)
        made = _state_of(state, rank_of(collective), objects)
        given = _options.save_options(options)
        arguments = (made._handle, storage_handle(storage), path_argument(path, storage), members)
    if not display and not on_main_thread():
        try:
            return Report(native.shw_save((context or contexts.shared("calls"))._handle, *arguments, given))
        finally:
            _log.drain()
    held = _options.save_options({**options, "hold": "on", "priority": "normal"})
    return _wait(native.shw_save_async(_call_context(context, options)._handle, *arguments, held), display)


def save_async(state: State | Stateful | Mapping[Any, Any], path: Any, *, storage: Any = None, collective: Any = None,
               objects: str = "json", progress: Listener | None = None, context: contexts.Context | None = None,
               **options: Unpack[SaveOptions]) -> Job:
    """Saves in the background: the state is copied first (Job.wait_staged), then written. Arguments as for save; the
    collective must be used by nothing else until the job has ended. `memory_budget` bounds the copy: a state above it is
    saved from the caller's memory, and staged only when that is written; so is any state with `hold`. The first copy also has
    to find memory, unless `prepare` did. `priority="background"` leaves cores to the caller: all but the copy runs on threads
    that get about a tenth of a core that others want. `progress` is told from a thread of its own."""
    members = collective_handle(collective)
    with OnTheWay(SAVE, collective, members, background=True):
        display = None if progress is None else Display(progress)
        made = _state_of(state, rank_of(collective), objects)
        given = _options.save_options(options)
        handles = (storage_handle(storage), members)
        jobs = context or contexts.shared("jobs", rank_of(collective))
        target = path_argument(path, storage)
    job = native.shw_save_async(jobs._handle, made._handle, handles[0], target, handles[1], given)
    return _told(Job(job, (made, storage, collective, handles), None, True), display)


def prepare(state: State | Stateful | Mapping[Any, Any], *, collective: Any = None, objects: str = "json") -> None:
    """Makes the memory into which save_async copies such a state, so that the first copy is as fast as later ones. No rank
    waits for another, and nothing is saved.

    Args:
        state, objects: as for save; what counts is the size of the tensors.
        collective: that of the saves; copies of the ranks of one process lie apart.
    Raises ResourceExhaustedError when there is not so much memory.
    """
    rank = rank_of(collective)
    prepare_of(_state_of(state, rank, objects), rank)


def prepare_of(state: State, rank: int) -> None:
    """`prepare` of a State."""
    native.shw_prepare(contexts.shared("jobs", rank)._handle, state._handle)


def _told(job: Job, display: Display | None) -> Job:
    if display:
        job.tell(display)
    return job


@overload
def load(path: Any, into: None = None, *, storage: Any = None, collective: Any = None, trust_pickle: bool = False,
         allow_types: Iterable[Any] | None = None, progress: Listener | None = None,
         context: contexts.Context | None = None, **options: Unpack[LoadOptions]) -> dict[Any, Any]: ...


@overload
def load(path: Any, into: State | Stateful | Mapping[Any, Any], *, storage: Any = None, collective: Any = None,
         trust_pickle: bool = False, allow_types: Iterable[Any] | None = None, progress: Listener | None = None,
         context: contexts.Context | None = None, **options: Unpack[LoadOptions]) -> Report: ...


def load(path: Any, into: State | Stateful | Mapping[Any, Any] | None = None, *, storage: Any = None,
         collective: Any = None, trust_pickle: bool = False, allow_types: Iterable[Any] | None = None,
         progress: Listener | None = None, context: contexts.Context | None = None,
         **options: Unpack[LoadOptions]) -> Report | dict[Any, Any]:
    """Loads a checkpoint.

    Args:
        path, storage, collective, progress, context: as for save.
        into: nested mapping (or writable State) whose tensors are filled in place and whose other values, whatever they
            are, are replaced; gives a Report. Of a Stateful object what its state_dict gives is filled, then its
            load_state_dict is called with it. None gives a nested dict of Tensors and values, as it was saved.
            Of rank_local entries each rank is given its own, in both cases; without a collective this is rank 0.
        allow_types: classes and functions that pickles may use beside built-in, standard-library and numpy types that run
            nothing; PermissionDeniedError names any other. None: pickles come as bytes where bytes were asked for (b"" in
            `into`, or no `into`), and elsewhere may use the harmless types alone.
        trust_pickle: run pickles that are stored as objects, whatever they do; only for checkpoints that you made yourself.
        strict: rules for the names that a glob matches: {glob: (missing, unexpected, cast)}, or with shape as a fourth
            word, as {"optimizer.*": ("report", "report", "allow")}. The first glob that matches replaces the options.
        options: verify, read_path, exchange, missing, unexpected, cast, shape, memory_budget, threads, deadline (seconds),
            trace_path, format, preset. docs/save-and-load.md lists their values.
    Raises a ShardwrightError; nothing is cast, skipped or left unfilled in silence. When it fails after reading began, the
    tensors of `into` may hold part of the bytes.
    """
    members = collective_handle(collective)
    with OnTheWay(LOAD, collective, members, background=False):
        display = None if progress is None else Display(progress)
        rank = rank_of(collective)
        types = _pickles.chosen(allow_types)
        given = _options.load_options(options)
        if into is not None:
            target = _target_of(into, rank)
        else:
            entries = Entries(path, storage, rank, options)
            target = entries.state
        arguments = (target._handle, storage_handle(storage), path_argument(path, storage), members, given)
    if into is not None:
        report = _load_into(arguments, options, display, context)
        target.finish_load(report.missing, trust_pickle, types)
        return report
    report = _load_into(arguments, options, display, context)
    entries.state.finish_load(report.missing, trust_pickle, types)
    return entries.tree()


def _load_into(arguments: tuple[Any, ...], options: Mapping[str, Any], display: Display | None,
               context: contexts.Context | None) -> Report:
    if not display and not on_main_thread():
        try:
            return Report(native.shw_load((context or contexts.shared("calls"))._handle, *arguments))
        finally:
            _log.drain()
    return _wait(native.shw_load_async(_call_context(context, options)._handle, *arguments), display)


def load_async(path: Any, into: State | Stateful | Mapping[Any, Any], *, storage: Any = None, collective: Any = None,
               trust_pickle: bool = False, allow_types: Iterable[Any] | None = None, progress: Listener | None = None,
               context: contexts.Context | None = None, **options: Unpack[LoadOptions]) -> Job:
    """Loads in the background. The tensors belong to the job until it has ended; other values are replaced, and Stateful
    objects get their states, by Job.report or Job.result. Arguments as for load; `progress` is told from a thread of its
    own."""
    members = collective_handle(collective)
    with OnTheWay(LOAD, collective, members, background=True):
        display = None if progress is None else Display(progress)
        types = _pickles.chosen(allow_types)
        target = _target_of(into, rank_of(collective))
        given = _options.load_options(options)
        handles = (storage_handle(storage), members)
        jobs = context or contexts.shared("jobs", rank_of(collective))
        text = path_argument(path, storage)
    job = native.shw_load_async(jobs._handle, target._handle, handles[0], text, handles[1], given)
    return _told(Job(job, (target, storage, collective, handles),
                     lambda report: target.finish_load(report.missing, trust_pickle, types), False), display)


def open(path: Any, *, storage: Any = None, rank: int = -1, **options: Unpack[OpenOptions]) -> Checkpoint:
    """Opens a checkpoint and recognises its format. A context manager.

    Args:
        path, storage: as for save.
        rank: see what this rank is given: entries that all share and its own rank_local ones. -1 = all entries, a
            rank_local name standing for that of the lowest rank; Checkpoint.tensor and .object take another.
        options: verify, read_path, format, memory_budget, threads, deadline (seconds).
    """
    return Checkpoint(path, storage=storage, rank=rank, **options)


class Entries:
    """Targets for everything of a checkpoint that a rank is given, and the nested dict that they become."""

    def __init__(self, path: Any, storage: Any, rank: int, options: Mapping[str, Any]) -> None:
        known = {key: options[key] for key in ("verify", "read_path", "format") if key in options}
        with Checkpoint(path, storage=storage, **known) as checkpoint:
            rows, names = checkpoint._table(), checkpoint._all_names()
            mine = [i for i, row in enumerate(rows) if row.info.rank in (-1, rank)]
            tensors = allocate([rows[i].dtype_number for i in mine], [rows[i].shape for i in mine])
            self.tensors = {names[i]: tensor for i, tensor in zip(mine, tensors, strict=True)}
            self.paths = {names[i]: native.shw_checkpoint_tensor_path(checkpoint._handle, i) for i in mine}
            objects = [name.decode("utf-8") for name in native.shw_checkpoint_object_names(checkpoint._handle)]
            own = [i for i in range(len(objects))
                   if native.shw_checkpoint_object_rank(checkpoint._handle, i) in (-1, rank)]
            self.paths |= {objects[i]: native.shw_checkpoint_object_path(checkpoint._handle, i) for i in own}
        self.values: dict[str, Any] = {}
        self.state = State.for_load(self.tensors, [objects[i] for i in own], self.values)

    def tree(self) -> dict[Any, Any]:
        """Tensors and values under their paths."""
        root: dict[Any, Any] = {}
        for name, value in (self.tensors | self.values).items():
            parts = json.loads(self.paths[name]) if self.paths[name] else [name]
            if not _put(root, parts, value):
                root[name] = value
        return {key: _with_lists(value) for key, value in root.items()}


class _Node(dict[Any, Any]):
    """A container while the tree is built; positions of lists are ("[]", position) keys."""


def _put(root: dict[Any, Any], parts: list[Any], value: Any) -> bool:
    """False when a value lies where a container is needed, or the other way round."""
    keys = [("[]", part[0]) if isinstance(part, list) else part for part in parts]
    node = root
    for key in keys[:-1]:
        node = node.setdefault(key, _Node())
        if not isinstance(node, _Node):
            return False
    if keys[-1] in node:
        return False
    node[keys[-1]] = value
    return True


def _with_lists(value: Any) -> Any:
    if not isinstance(value, _Node):
        return value
    if value and all(isinstance(key, tuple) for key in value):
        return [_with_lists(value[key]) for key in sorted(value)]
    return {key: _with_lists(inner) for key, inner in value.items()}
