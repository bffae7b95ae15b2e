# SPDX-License-Identifier: Apache-2.0
"""Saves and loads by the library itself: no bytes, plans or metadata pass through Python.

Taken where nothing of the caller's wants to be asked in between: default planners whose methods are their own, and a path,
or a writer or reader of ours, as storage.
"""
from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from ... import calls
from ...errors import InvalidArgumentError, MissingNameError, ShardwrightError, UnimplementedError
from ...jobs import Job
from ...report import Report
from ...state import State
from .. import _Prepared
from . import _replicas
from ._errors import of_call
from ._archives import Archives
from ._flat_state import FlatState, Leaves, NotDescribed
from ._place import Place
from .planner import DefaultLoadPlanner, InvalidPlanError, _init_state_dict, flatten_state_dict

logger = logging.getLogger(__name__)


class Members(NamedTuple):
    """Who takes part in a call: the ranks of a group (None = the default one), or this one alone."""

    group: dist.ProcessGroup | None
    alone: bool
    use: str = "calls"  # the side group over which they speak: of the thread that calls

    @property
    def rank(self) -> int:
        """This rank among them."""
        return 0 if self.alone else dist.get_rank(self.group)

    @property
    def size(self) -> int:
        """How many they are."""
        return 1 if self.alone else dist.get_world_size(self.group)


# ---- both ----

def prepared(members: Members, state_of: Callable[[int], State], *, writable: bool, options: Mapping[str, Any],
             background: bool = False) -> _Prepared | None:
    """The call of a state that `state_of` makes for a rank; None on all ranks where on one of them it raises NotDescribed."""
    missed: list[NotDescribed] = []

    def described(rank: int) -> State:
        try:
            return state_of(rank)
        except NotDescribed as e:
            missed.append(e)
            return State(writable=writable)

    made = _Prepared(None, members.group, writable=writable, background=background, objects="json", options=options,
                     targets=described, alone=members.alone, use=members.use)
    return None if _any(made, bool(missed)) else made


def needs_stream_transform(error: UnimplementedError) -> bool:
    """Whether a load failed because of a stream transform, which its writer's own code undoes, item by item."""
    return "stored through" in error.message


def _any(made: _Prepared, here: bool) -> bool:
    return here if made.agreement is None else made.agreement.all_reduce_i64([int(here)], "max")[0] == 1


# ---- saving ----

def _prepared_save(tree: Mapping[str, Any], members: Members, background: bool, options: Mapping[str, Any]) -> _Prepared | None:
    leaves = Leaves(members.group, False, members.alone)
    return prepared(members, lambda rank: FlatState(tree, leaves, writable=False, rank=rank), writable=False, options=options,
                    background=background)


def save(tree: Mapping[str, Any], place: Place, members: Members, verify_replicas: str, options: dict[str, Any]) -> Report | None:
    """Saves; None, and nothing done, where the state has to be saved step by step."""
    made = _prepared_save(tree, members, False, options)
    if made is None:
        return None
    checked = "off" if verify_replicas == "off" else "auto"
    try:
        return _saved(made, place, {**options, "verify_replicas": checked})
    except InvalidArgumentError as e:
        if verify_replicas != "warn" or not _is_of_replicas(e):
            raise of_call("plan", e, members.rank) from e
        first = e.details["tensor"]
    except ShardwrightError as e:
        raise of_call("write", e, members.rank) from e
    made = _prepared_save(tree, members, False, options)
    if made is None:
        return None
    _warn_of_replicas(tree, made, members, options, first)
    try:
        return _saved(made, place, {**options, "verify_replicas": "off"})
    except ShardwrightError as e:
        raise of_call("write", e, members.rank) from e


def _saved(made: _Prepared, place: Place, options: dict[str, Any]) -> Report:
    return calls.save(made.state, place.path, storage=place.storage, collective=made.collective, **options)


def _is_of_replicas(error: ShardwrightError) -> bool:
    return "tensor" in error.details and "rank_local" in error.details.get("hint", "")


def _warn_of_replicas(tree: Mapping[str, Any], made: _Prepared, members: Members, options: Mapping[str, Any],
                      first: str = "") -> None:
    """`first`: one that is known to differ."""
    if made.agreement is None:
        return
    names = _replicas.differing(tree, made.agreement, options.get("kind"))
    if members.rank == 0 and (names or first):
        _replicas.warn(names or [first])


def save_async(tree: Mapping[str, Any], place: Place, members: Members, verify_replicas: str, options: dict[str, Any]
               ) -> Job | None:
    """Saves in the background; None, and nothing done, where the state has to be saved step by step."""
    made = _prepared_save(tree, members, True, options)
    if made is None:
        return None
    if verify_replicas == "warn":
        _warn_of_replicas(tree, made, members, options)
    checked = "auto" if verify_replicas == "error" else "off"
    return calls.save_async(made.state, place.path, storage=place.storage, collective=made.collective,
                            **{**options, "verify_replicas": checked})


# ---- loading ----

class LoadWishes(NamedTuple):
    """What the caller of a load wants beyond its state."""

    planner: DefaultLoadPlanner | None
    allow_partial: bool
    trusted: bool
    allow_types: Sequence[Any]
    options: dict[str, Any]


def load(tree: dict[str, Any], place: Place, members: Members, wishes: LoadWishes) -> bool:
    """Fills a state in place; False, and nothing done, where it has to be loaded step by step."""
    _init_state_dict(tree)  # tensors without memory get some
    names = Names()
    while True:
        made = _prepared_load(tree, place, members, wishes, names)
        if made is None:
            return False
        try:
            report = _loaded(made, place, wishes)
        except MissingNameError as e:
            others = _other_names(made, tree, place)
            if others == names:
                raise of_call("plan", _of_other_kind(e, made.state, place), members.rank) from e
            names = others
            continue
        except UnimplementedError as e:
            if needs_stream_transform(e):
                return False
            raise of_call("read", e, members.rank) from e
        except ShardwrightError as e:
            raise of_call("read", e, members.rank) from e
        if wishes.allow_partial and _any(made, bool(report.missing)):
            others = _other_names(made, tree, place)
            if others != names:
                names = others
                continue
        _note(report, wishes.planner)
        return True


def _prepared_load(tree: Mapping[str, Any], place: Place, members: Members, wishes: LoadWishes, names: Names
                   ) -> _Prepared | None:
    def state_of(rank: int) -> State:
        return FlatState(tree, Leaves(members.group, True, members.alone), writable=True, rank=rank, version=names.version,
                         objects=names.objects, archives=Archives(place), trusted=wishes.trusted, allow_types=wishes.allow_types)

    return prepared(members, state_of, writable=True, options=wishes.options)


def _loaded(made: _Prepared, place: Place, wishes: LoadWishes) -> Report:
    options: dict[str, Any] = {"cast": "allow", "missing": "report" if wishes.allow_partial else "error", **wishes.options}
    report: Report = calls.load(place.path, made.state, storage=place.storage, collective=made.collective, **options)
    return report


class Names(NamedTuple):
    """Under which names a state is looked for: those that a version of torch gave it, and which tensors of it are stored as
    objects, whose values replace them."""

    version: str = "2.4"
    objects: frozenset[str] = frozenset()


def _other_names(made: _Prepared, tree: Mapping[str, Any], place: Place) -> Names:
    """Collective: how the checkpoint names what was not found. The keys of torch 2.3 and before are taken where some are
    stored that today's are not."""
    with place.open() as checkpoint:
        objects = set(checkpoint.object_names())
        stored = objects | checkpoint.keys()
    today, before = flatten_state_dict(tree)[0], flatten_state_dict(tree, "2.3")[0]
    old = _any(made, not (stored - today.keys()).isdisjoint(before))
    wanted = before if old else today
    return Names("2.3" if old else "2.4", frozenset(name for name, value in wanted.items()
                                                     if isinstance(value, torch.Tensor) and name in objects))


def _of_other_kind(error: MissingNameError, state: State, place: Place) -> ShardwrightError:
    """The error, in the words for an object that is wanted where a tensor is stored if it is of one."""
    name = error.details.get("tensor", "")
    with place.open() as checkpoint:
        if name not in checkpoint or name not in state.object_names():
            return error
    return InvalidPlanError(f"Invalid checkpoint metadata for {name}, expected BytesStorageMetadata but found "
                            "TensorStorageMetadata: the state holds no tensor there", error.details)


def _note(report: Report, planner: DefaultLoadPlanner | None) -> None:
    """Tells of casts, and leaves what was found with the planner that the caller has."""
    casts = {cast.name: (_dtype(cast.stored), _dtype(cast.wanted)) for cast in report.casts}
    if casts:
        shown = ", ".join(f"{name}: {a} to {b}" for name, (a, b) in list(casts.items())[:8])
        logger.warning("%d tensors are cast while they are loaded: %s", len(casts), shown)
    if planner is not None:
        planner.casts, planner.missing_keys, planner.unexpected_keys = casts, report.missing, report.unexpected


def _dtype(name: str) -> Any:
    return getattr(torch, name, name)
