# SPDX-License-Identifier: Apache-2.0
"""DefaultSavePlanner: torch's save planner over the engine, usable wherever torch takes a planner.

Methods may be overridden as torch documents it; an overridden method changes its own step only. `resolve_data`,
`lookup_object` and `transform_object` only read and may run on several threads.
"""
from __future__ import annotations

import dataclasses
import hashlib
import io
import logging
import marshal
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from torch.distributed.checkpoint import default_planner as original
from torch.distributed.checkpoint.planner import SavePlan, WriteItem, WriteItemType

from ... import _stored_objects
from . import _cache, _global, _paths
from ._errors import InvalidPlanError
from ._items import PlanItems, plan_of_state
from ._meta import flatten_sharded_tensors
from ._nested import Path, flatten_state_dict
from ._values import find_object, metadata_items, save_plan_of

logger = logging.getLogger(__name__)
OWNERS = ("exact", "lowest_rank", "balanced")
REPLICA_CHECKS = ("off", "warn", "error")


def _object_digests(state_dict: Mapping[str, Any], names: Iterable[str]) -> dict[str, bytes]:
    """Digests of the named values that are plain data; others are not compared."""
    found = {}
    for name in names:
        try:
            data = marshal.dumps(state_dict[name], 0)
        except (KeyError, ValueError):  # an item of a name of its own; no plain data
            continue
        found[name] = hashlib.blake2b(data, digest_size=_cache.VALUE_DIGEST_SIZE).digest()
    return found


def _described(state_dict: dict[str, Any]) -> tuple[SavePlan, list[str]]:
    """What one rank holds, and the names of byte objects where its items are a plan buffer."""
    found = plan_of_state(state_dict)
    return (save_plan_of(state_dict), []) if found is None else (SavePlan(PlanItems(found[0])), found[1])


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """What one rank holds: an item per shard, tensor and object of a flat state dict, replicas included. The items are
    made when somebody looks at them. `is_coordinator` changes nothing, as in torch 2.15."""
    del is_coordinator
    return _described(state_dict)[0]


def create_default_local_metadata(state_dict: dict[str, Any]) -> Metadata:
    """The metadata that a save of this state dict would have, with all shards of ShardedTensors."""
    return _global.create_default_global_save_plan([save_plan_of(state_dict, metadata_items)])[1]


class DefaultSavePlanner(original.DefaultSavePlanner):
    """Plans a save in the place of torch's DefaultSavePlanner: the same plans, metadata and errors. It is one by type, for hosts
    that ask; every method is its own.

    Args:
        flatten_state_dict: nested mappings, and lists with tensors, become flat names; paths go into planner_data.
        flatten_sharded_tensors: ShardedTensors inside ShardedTensors become simple ones.
        dedup_replicated_tensors: without effect, as in torch.
        dedup_save_to_lowest_rank: the lowest rank writes what several hold.
        enable_plan_caching: ranks whose state is described as before send two digests of 16 bytes in place of a plan, and
            one per plain value where `verify_replicas` compares them.
        owner: who writes what several ranks hold: "exact" as torch chooses, "lowest_rank", or "balanced" by bytes, ties
            to the lowest rank.
        verify_replicas: what to do where ranks hold different plain values under one name: "warn", "error" or "off".

    Attributes: `state_dict` (flat), `mappings` (name to path), `plan`, `global_plan`, `metadata`,
    `replica_mismatches`, the names whose values differ between ranks, and `altered_paths`, the paths that flattening does
    not keep: mappings without entries, and keys that are no text and come back as text.
    """

    mappings: dict[str, Path]

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
                 dedup_replicated_tensors: bool | None = None, dedup_save_to_lowest_rank: bool = False,
                 enable_plan_caching: bool = False, *, owner: str = "exact", verify_replicas: str = "warn") -> None:
        if owner not in OWNERS:
            raise InvalidPlanError(f"owner {owner!r} is none of {', '.join(OWNERS)}", {"parameter": "owner"})
        if verify_replicas not in REPLICA_CHECKS:
            raise InvalidPlanError(f"verify_replicas {verify_replicas!r} is none of {', '.join(REPLICA_CHECKS)}",
                                   {"parameter": "verify_replicas"})
        if dedup_replicated_tensors is not None:
            logger.warning("DefaultSavePlanner's `dedup_replicated_tensors` argument has no effect; remove it")
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.owner = owner
        self.verify_replicas = verify_replicas
        self.mappings = {}
        self.replica_mismatches: list[str] = []
        self.altered_paths: list[Path] = []
        self._enable_plan_caching = enable_plan_caching
        self._cached_plans_key = type(self).__name__  # what torch names its cache by, for hosts that read it
        self._local_key: bytes | None = None

    # ---- on every rank ----

    def set_up_planner(self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None,
                       is_coordinator: bool = False) -> None:
        """Takes the state dict; nothing is copied but the containers. InvalidPlanError for two equal flat names."""
        del storage_meta
        if self.flatten_state_dict:
            self.altered_paths = []
            state_dict, self.mappings = flatten_state_dict(state_dict, altered=self.altered_paths)
            if self.altered_paths and is_coordinator:
                logger.warning("%d paths do not come back as they are, empty mappings vanish and keys become text: %s",
                               len(self.altered_paths), ", ".join(map(str, self.altered_paths[:8])))
        if self.flatten_sharded_tensors:
            state_dict = flatten_sharded_tensors(state_dict)
        self.state_dict = state_dict
        self.is_coordinator = is_coordinator
        self._local_key = None

    def create_local_plan(self) -> SavePlan:
        """What this rank holds."""
        plan, objects = _described(self.state_dict)
        if self.verify_replicas != "off" and isinstance(plan.items, PlanItems):
            plan.items.digests = _object_digests(self.state_dict, objects)
        plan = dataclasses.replace(plan, planner_data=self._planner_data())
        self.plan = plan
        if not self._enable_plan_caching:
            return plan
        self._local_key = _cache.description_digest(plan)
        return _cache.local_plan(plan, self._local_key)

    def _planner_data(self) -> Any:
        """What a local plan carries beside its items."""
        return _paths.Paths(self.mappings) if self.flatten_state_dict else None

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """What this rank writes. StalePlanError for a plan that says that nothing has changed where none was finished."""
        self.plan = self._finish_plan_with_caching(new_plan) if self._enable_plan_caching else new_plan
        return self.plan

    def _finish_plan_with_caching(self, new_plan: SavePlan) -> SavePlan:
        return _cache.finished_plan(new_plan, self._local_key, type(self))

    def resolve_data(self, write_item: WriteItem) -> torch.Tensor | io.BytesIO:
        """The bytes behind an item: a tensor where it lies, or an object as torch.save writes it."""
        found: torch.Tensor | io.BytesIO = self.transform_object(write_item, self.lookup_object(write_item.index))
        return found

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The tensor part or object that an index names. InvalidPlanError (a ValueError) where there is none."""
        return find_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """Serialises byte objects; tensors pass. What a load will need to be told is logged once per class."""
        if write_item.type != WriteItemType.BYTE_IO:
            return object
        stream = io.BytesIO()
        _stored_objects.write(object, write_item.index.fqn, stream)
        return stream

    # ---- on the coordinator ----

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """What every rank writes, and the metadata. InvalidPlanError (a ValueError) names chunks that overlap, leave
        their tensor or do not fill it; PlanConflictError (an AssertionError) names ranks that disagree."""
        if self._enable_plan_caching:
            replies, self.global_plan, self.metadata = self._create_global_plan_with_caching(all_plans)
            return replies, self.metadata
        _cache.check_whole(all_plans)
        self._gathered(all_plans)
        self.global_plan, self.metadata = self._create_global_plan(all_plans)
        return self.global_plan, self.metadata

    def _dedup_save_plans(self, all_plans: list[SavePlan]) -> list[SavePlan]:
        """Leaves each item on one rank; when overridden, merging goes item by item through it."""
        return _global.dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank)

    def _create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        own = getattr(self._dedup_save_plans, "__func__", None) is DefaultSavePlanner._dedup_save_plans
        if own:
            owner = "lowest_rank" if self.dedup_save_to_lowest_rank else self.owner
            global_plan, metadata = _global.merged(all_plans, owner)
        else:
            global_plan, metadata = _global.create_default_global_save_plan(self._dedup_save_plans(all_plans))
            _global.check_global_plan(global_plan, metadata)
        if self.flatten_state_dict:
            metadata = dataclasses.replace(metadata, planner_data=_paths.merged([plan.planner_data for plan in global_plan]))
        return global_plan, metadata

    def _create_global_plan_with_caching(self, all_plans: list[SavePlan]
                                         ) -> tuple[list[SavePlan], list[SavePlan], Metadata]:
        """(what to send to the ranks, what they write, metadata)."""
        options = self._options_text()
        full, digests = _cache.received_plans(all_plans)
        self._gathered(full)
        key = None if any(digest is None for digest in digests) else (options, tuple(digests))
        done = _cache.known_world(full, key)
        if done is None:
            done = self._create_global_plan(full)
            _cache.remember_world(*done, key)
        plans, metadata = done
        return _cache.replies(all_plans, plans), plans, metadata

    def _gathered(self, plans: list[SavePlan]) -> None:
        """The plans of all ranks before they are merged, none of them a digest."""
        self.replica_mismatches = [] if self.verify_replicas == "off" else _global.differing_replicas(plans)
        if not self.replica_mismatches:
            return
        text = ("ranks hold different values under one name, and one of them is written: "
                + ", ".join(self.replica_mismatches[:8]))
        if self.verify_replicas == "error":
            raise InvalidPlanError(text, {"tensor": self.replica_mismatches[0]})
        logger.warning(text)

    def _options_text(self) -> str:
        kind = type(self)
        return (f"{kind.__module__}.{kind.__qualname__}/{self.owner}/{self.dedup_save_to_lowest_rank}"
                f"/{self.flatten_state_dict}/{self.flatten_sharded_tensors}")
