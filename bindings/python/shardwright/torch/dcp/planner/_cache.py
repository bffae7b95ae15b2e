# SPDX-License-Identifier: Apache-2.0
"""Plan caching by content: what a rank holds is named by a digest, and equal digests mean equal plans.

A rank whose description is unchanged sends the digest, and gets its final plan only where that has changed. What plain values
are is no part of a description: their digests of this save travel beside it. Entries are plans and never results of a
save, so a save that fails cannot make one wrong: a rank that got no reply sends everything
again. A rank sends a digest only where a coordinator has said with its reply that it remembers plans. Options and classes of
planners may differ between ranks: those of the coordinator decide, and are part of what it remembers a merged plan by. Both
sides keep the last `SIZE` descriptions. torch's own cache (class-level dicts by class name) is not used.
"""
from __future__ import annotations

import dataclasses
import hashlib
import marshal
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar

from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import SavePlan

from . import _paths
from ._errors import StalePlanError
from ._items import PlanItems, StoredEntries, Untouched, described, untouched

SIZE = 8
VALUE_DIGEST_SIZE = 16
_T = TypeVar("_T")


class _Recent(Generic[_T]):
    """The entries that were used last. Thread-safe."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, _T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> _T | None:
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: Hashable, value: _T) -> None:
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > SIZE:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()


@dataclasses.dataclass(frozen=True)
class KnownPlan:
    """What a rank sends in place of a plan: digests of its description and of the final plan that it got for it. `values`: 16
    bytes per plain value that replicas are compared by, in the order of the description."""

    digest: bytes
    final: bytes
    values: bytes = b""


@dataclasses.dataclass
class _FinalPlan:
    """What a rank writes for one description. `cached`: the coordinator remembers plans. `asked`: the digest was sent and no
    reply has come yet."""

    items: Untouched
    digest: bytes
    planner_data: Any
    cached: bool
    asked: bool = False


@dataclasses.dataclass(frozen=True)
class _Description:
    """What one rank has sent: the plan without its items, these as what they stand for, which no host can look into, and the
    names of plain values."""

    plan: SavePlan
    items: Untouched
    values: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _World:
    """What all ranks write for one set of descriptions."""

    items: list[Untouched]
    stored: bytes
    planner_data: Any


_ADVICE = ("save again, and the plan is sent whole; where the host itself keeps plans from save to save, let all ranks plan "
           "anew first")

final_plans: _Recent[_FinalPlan] = _Recent()
_finished: _Recent[SavePlan] = _Recent()  # the last one of each class of planners
_worlds: _Recent[_World] = _Recent()
_descriptions: dict[int, _Recent[_Description]] = {}


def forget() -> None:
    """Empties the caches of this process."""
    final_plans.clear()
    _finished.clear()
    _worlds.clear()
    _descriptions.clear()


def _values_of(plan: SavePlan) -> dict[str, bytes]:
    return getattr(plan.items, "digests", None) or {}


def description_digest(plan: SavePlan) -> bytes | None:
    """16 bytes that name a local plan, its paths, and which of its values are compared; None where somebody has looked into
    its items or it carries planner data of an unknown kind."""
    items = untouched(plan.items)
    if items is None:
        return None
    try:
        compared = marshal.dumps(list(_values_of(plan)), 0)
        beside = _paths.packed(plan.planner_data) or marshal.dumps(plan.planner_data, 0)
    except ValueError:
        return None
    text = items.digest + len(compared).to_bytes(8, "little") + compared + beside
    return hashlib.blake2b(text, digest_size=16).digest()


# ---- on every rank ----

def local_plan(plan: SavePlan, key: bytes | None) -> SavePlan:
    """What to send: the plan, or the digest of one whose final plan is known."""
    final = None if key is None else final_plans.get(key)
    if key is None or final is None or final.asked or not final.cached:
        return plan
    final.asked = True
    values = b"".join(_values_of(plan).values())
    return SavePlan([], planner_data=KnownPlan(key, final.digest, values), usable=False)


def finished_plan(new_plan: SavePlan, key: bytes | None, kind: type) -> SavePlan:
    """The plan to write by, from the coordinator's reply.

    Args:
        key: digest of what this rank holds; None where it was not described, or is no plan buffer.
        kind: class of the planner.
    Without a digest in it an unusable plan is the word of torch's own coordinator, or of a host, that nothing has changed: it
    means the plan that was finished for this description, or last by a planner of the class where nothing is described.
    StalePlanError where there is none, or where the reply is for another description than that of `key`.
    """
    if new_plan.usable:
        items = described(new_plan.items)
        if key is not None and items is not None:
            cached = getattr(new_plan.items, "cached", False)
            final_plans.put(key, _FinalPlan(items, items.digest, new_plan.planner_data, cached))
        _finished.put(kind, new_plan if items is None else dataclasses.replace(new_plan, items=PlanItems(*items)))
        return new_plan
    meant = new_plan.planner_data
    if meant is None and key is None:
        last = _finished.get(kind)
        if last is not None:
            return last
    for_this = meant is None or key in (None, meant)
    final = final_plans.get(key if meant is None else meant) if for_this else None
    if final is None:
        raise StalePlanError(f"the coordinator takes this rank's final plan for known, and it is not; {_ADVICE}")
    final.asked = False
    return dataclasses.replace(new_plan, items=PlanItems(*final.items), planner_data=final.planner_data, usable=True)


# ---- on the coordinator ----

def _digests_of(names: tuple[str, ...], values: bytes) -> dict[str, bytes]:
    return {name: values[VALUE_DIGEST_SIZE * i:VALUE_DIGEST_SIZE * (i + 1)] for i, name in enumerate(names)}


def check_whole(plans: Sequence[SavePlan]) -> None:
    """StalePlanError where a rank sent a digest to a coordinator that keeps no plans."""
    for rank, plan in enumerate(plans):
        if not plan.usable and isinstance(plan.planner_data, KnownPlan):
            raise StalePlanError(f"rank {rank} sent the digest of a plan to a coordinator without plan caching; {_ADVICE}",
                                 {"rank": str(rank)})


def received_plans(plans: Sequence[SavePlan]) -> tuple[list[SavePlan], list[bytes | None]]:
    """The full plans of all ranks and their digests. What the storage writer put into a plan stays in its place."""
    full: list[SavePlan] = []
    digests: list[bytes | None] = []
    values: dict[tuple[tuple[str, ...], bytes], dict[str, bytes]] = {}  # ranks with equal values share a dict
    for rank, plan in enumerate(plans):
        known = _descriptions.setdefault(rank, _Recent())
        if plan.usable:
            digest, items = description_digest(plan), untouched(plan.items)
            if digest is not None and items is not None:
                known.put(digest, _Description(dataclasses.replace(plan, items=[]), items, tuple(_values_of(plan))))
            full.append(plan)
        else:
            digest = getattr(plan.planner_data, "digest", None)
            found = None if digest is None else known.get(digest)
            if found is None or len(plan.planner_data.values) != VALUE_DIGEST_SIZE * len(found.values):
                raise StalePlanError(f"rank {rank} sent the digest of a plan that the coordinator does not know; {_ADVICE}",
                                     {"rank": str(rank)})
            key = (found.values, plan.planner_data.values)
            if key not in values:
                values[key] = _digests_of(*key)
            full.append(dataclasses.replace(found.plan, items=PlanItems(*found.items, digests=values[key]),
                                            storage_data=plan.storage_data))
        digests.append(digest)
    return full, digests


def known_world(full: Sequence[SavePlan], key: Hashable | None) -> tuple[list[SavePlan], Metadata] | None:
    """Plans and metadata of ranks that hold what they held in an earlier save."""
    world = None if key is None else _worlds.get(key)
    if world is None:
        return None
    planner_data = dict(world.planner_data) if isinstance(world.planner_data, dict) else world.planner_data
    return ([dataclasses.replace(plan, items=PlanItems(*items)) for plan, items in zip(full, world.items, strict=True)],
            Metadata(StoredEntries(world.stored), planner_data=planner_data))


def remember_world(plans: Sequence[SavePlan], metadata: Metadata, key: Hashable | None) -> None:
    """Keeps plans and metadata while they are plan buffers."""
    items = [found for plan in plans if (found := untouched(plan.items)) is not None]
    stored = getattr(metadata.state_dict_metadata, "plan", None)
    if key is None or stored is None or len(items) < len(plans):
        return
    beside = metadata.planner_data
    _worlds.put(key, _World(items, stored, dict(beside) if isinstance(beside, dict) else beside))


def replies(received: Sequence[SavePlan], plans: Sequence[SavePlan]) -> list[SavePlan]:
    """What each rank gets: its digest where it said that it has its final plan already, else that plan."""
    found = []
    for asked, plan in zip(received, plans, strict=True):
        items = untouched(plan.items)
        has = getattr(asked.planner_data, "final", None) if not asked.usable else None
        if has is not None and items is not None and has == items.digest:
            found.append(SavePlan([], storage_data=plan.storage_data, planner_data=asked.planner_data.digest, usable=False))
        else:
            if isinstance(plan.items, PlanItems):
                plan.items.cached = True
            found.append(plan)
    return found
