# SPDX-License-Identifier: Apache-2.0
"""Strategies by which the ranks of a group share what several of them hold: each shard is written once, and read once.

Who writes or reads what is the greedy distribution of `..distribution`. The state dicts that are given stay as they are.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import torch.distributed as dist

from ....errors import UnimplementedError
from .._agreement import Ranks
from .._exchange import group_rank, group_size
from ..consistency import prove
from ..distribution import (ObjectId, ShardDistribution, ShardId, has_elements, is_same_part, object_id_of, shard_id_of,
                            with_owners)
from ..errors import PlannerStateError, failure
from ..exchange import check_exchange_algo, exchange_by_distribution
from ..kinds import is_main_replica, is_sharded_object
from ..object_exchange import exchange_loaded_objects
from ..positions import filled, leaves_with_paths, places_in, value_at
from ..positions import Path as Place
from ..trees import extract_matching_values
from .base import AsyncSaveShardedStrategy, LoadShardedStrategy
from .distribution_cache import DistributionCache


class FullyParallelSaveStrategyWrapper(AsyncSaveShardedStrategy):
    """Lets the ranks of a group share the writing of what they all hold.

    Args:
        strategy: does the writing.
        parallelization_group: the ranks that share, as a data-parallel group; None = the default group.
        do_cache_distribution: plan once, and again when a rank holds something else: content decides.
        validate_access_integrity: prove, over all ranks, each distribution that was planned.
        pg_cache_path, pg_cache_create: a folder in which distributions lie; whether they are written there, or read. One that
            was made for another state is planned anew.
    """

    def __init__(self, strategy: Any, parallelization_group: dist.ProcessGroup | None = None, do_cache_distribution: bool = False,
                 validate_access_integrity: bool = True, pg_cache_path: Any = None, pg_cache_create: bool = False) -> None:
        super().__init__(strategy.backend, strategy.version)
        self.strategy = strategy
        self.parallelization_group = parallelization_group
        self.do_cache_distribution = do_cache_distribution
        self.validate_access_integrity = validate_access_integrity
        self._distributions = DistributionCache(parallelization_group, False, do_cache_distribution, pg_cache_path, pg_cache_create)

    @property
    def can_handle_sharded_objects(self) -> bool:
        """Whether the strategy does."""
        return bool(self.strategy.can_handle_sharded_objects)

    @property
    def takes_marker_away(self) -> bool:
        """Whether the strategy does, before it replaces anything."""
        return bool(getattr(self.strategy, "takes_marker_away", False))

    @property
    def cached_distribution(self) -> ShardDistribution | None:
        """What is kept for the next save."""
        return self._distributions.kept

    def save(self, sharded_state_dict: Any, checkpoint_dir: str | Path) -> None:
        """Saves as the strategy does, each shard by its owner. Collective over the default group."""
        self.strategy.save(self.apply_saving_parallelization(sharded_state_dict), checkpoint_dir)

    def async_save(self, sharded_state_dict: Any, checkpoint_dir: str | Path, async_strategy: str | None = None) -> Any:
        """The same in the background; the strategy hears of an `async_strategy` that is given. PlannerStateError where the
        strategy cannot."""
        if not hasattr(self.strategy, "async_save"):
            raise failure(PlannerStateError, f"Cannot apply async_save to non-async base strategy {self.strategy}")
        given = () if async_strategy is None else (async_strategy,)
        return self.strategy.async_save(self.apply_saving_parallelization(sharded_state_dict), checkpoint_dir, *given)

    def apply_saving_parallelization(self, sharded_state_dict: Any) -> Any:
        """A state dict whose shards have replica id 0 where this rank saves them. Collective over the default group."""
        ranks = Ranks()  # of all groups: one may plan, or fail, where another does not
        owned = ranks.together(lambda: _by_owners(sharded_state_dict, self._distributions.of(sharded_state_dict),
                                                  self.parallelization_group))
        if self.validate_access_integrity and ranks.any_of(self._distributions.is_new):
            prove(owned, ranks)
        return owned


class FullyParallelLoadStrategyWrapper(LoadShardedStrategy):
    """Lets each rank of a group read a part of what they all want, and pass it on.

    Args:
        strategy: does the reading.
        parallelization_group: the ranks that share; None = the default group.
        do_cache_distribution, pg_cache_path, pg_cache_create: as for saves.
        exchange_algo: "broadcast" passes shard by shard on, in the memory of one; "gather_rounds" one of each rank at a time;
            "gather_object" all at once.
        per_rank_object_load: each rank reads its own objects together with its tensors, and none are passed on.
    Raises:
        UnimplementedError: an unknown exchange_algo. It is a NotImplementedError, too.
    """

    def __init__(self, strategy: Any, parallelization_group: dist.ProcessGroup | None = None, do_cache_distribution: bool = False,
                 exchange_algo: str = "broadcast", per_rank_object_load: bool = False, pg_cache_path: Any = None,
                 pg_cache_create: bool = False) -> None:
        check_exchange_algo(exchange_algo)
        self.strategy = strategy
        self.parallelization_group = parallelization_group
        self.do_cache_distribution = do_cache_distribution
        self.exchange_algo = exchange_algo
        self.per_rank_object_load = per_rank_object_load
        self._distributions = DistributionCache(parallelization_group, True, do_cache_distribution, pg_cache_path, pg_cache_create)

    @property
    def can_handle_sharded_objects(self) -> bool:
        """Whether the strategy does."""
        return bool(self.strategy.can_handle_sharded_objects)

    @property
    def cached_distribution(self) -> ShardDistribution | None:
        """What is kept for the next load."""
        return self._distributions.kept

    def apply_loading_parallelization(self, sharded_state_dict: Any) -> ShardDistribution | None:
        """Who of the group reads what; None in a group of one rank. Collective in the group."""
        return self._distributions.of(sharded_state_dict)

    def load(self, sharded_state_dict: Any, checkpoint_dir: str | Path, async_strategy: str = "mcore") -> Any:
        """The values of a request, in its structure; tensors of the request are filled where they lie. Collective over the
        default group. `async_strategy` is accepted: it says nothing about a load."""
        return self.load_over(sharded_state_dict, checkpoint_dir, None)

    def load_over(self, sharded_state_dict: Any, checkpoint_dir: str | Path, process_group: dist.ProcessGroup | None) -> Any:
        """The same over the ranks of a group, of which the sharing ranks are a part."""
        ranks = Ranks(process_group)  # all take part in each step, also those that share with nobody
        request: _Shared = ranks.together(lambda: self._shared(sharded_state_dict))
        request.take(ranks.together(lambda: self._read(request.own, checkpoint_dir, process_group)))
        tensors = ranks.together(lambda: self._exchanged(request))
        objects: dict[ObjectId, Any] = {}
        if not self.per_rank_object_load:
            objects = exchange_loaded_objects(request.loaded_objects, request.absent_objects, process_group)
        return request.whole(tensors, objects)

    def _shared(self, sharded_state_dict: Any) -> _Shared:
        distribution = self._distributions.of(sharded_state_dict)
        return _Shared(_by_owners(sharded_state_dict, distribution, self.parallelization_group), distribution,
                       self.per_rank_object_load)

    def _exchanged(self, request: _Shared) -> dict[ShardId, Any]:
        if request.distribution is None:
            return {}
        return exchange_by_distribution(request.loaded_tensors, request.absent_tensors, request.distribution,
                                        self.parallelization_group, self.exchange_algo)

    def _read(self, request: Any, checkpoint_dir: str | Path, group: dist.ProcessGroup | None) -> Any:
        if group is None:
            return self.strategy.load(request, checkpoint_dir)
        if not hasattr(self.strategy, "load_over"):
            raise UnimplementedError(f"{self.strategy} loads over the default group only", {"parameter": "process_group"})
        return self.strategy.load_over(request, checkpoint_dir, group)

    def load_tensors_metadata(self, checkpoint_dir: str | Path) -> Any:
        """As the strategy."""
        return self.strategy.load_tensors_metadata(checkpoint_dir)

    def load_sharded_metadata(self, checkpoint_dir: str | Path) -> Any:
        """As the strategy."""
        return self.strategy.load_sharded_metadata(checkpoint_dir)

    def check_backend_compatibility(self, loaded_backend: str) -> None:
        """As the strategy."""
        self.strategy.check_backend_compatibility(loaded_backend)

    def check_version_compatibility(self, loaded_version: int) -> None:
        """As the strategy."""
        self.strategy.check_version_compatibility(loaded_version)


def _by_owners(tree: Any, distribution: ShardDistribution | None, group: dist.ProcessGroup | None) -> Any:
    """A tree whose main replicas are those that the distribution has chosen."""
    return tree if distribution is None else with_owners(tree, distribution, group_rank(group))


class _Shared:
    """A request of which this rank reads a part; all of it without a distribution."""

    def __init__(self, tree: Any, distribution: ShardDistribution | None, reads_objects: bool) -> None:
        self._tree, self.distribution = tree, distribution

        def is_own(leaf: Any) -> bool:
            return distribution is None or is_main_replica(leaf.replica_id) or (reads_objects and is_sharded_object(leaf))

        self.own, _ = extract_matching_values(tree, is_own)
        absent = [leaf for _, leaf in leaves_with_paths(tree) if not is_own(leaf)]
        self.absent_tensors: dict[ShardId, Any] = {shard_id_of(leaf): leaf for leaf in absent if not is_sharded_object(leaf)}
        self.absent_objects: dict[ObjectId, Any] = {object_id_of(leaf): leaf for leaf in absent if is_sharded_object(leaf)}
        self.loaded_tensors: dict[ShardId, Any] = {}
        self.loaded_objects: dict[ObjectId, Any] = {}
        self._values: dict[Place, Any] = {}

    def take(self, loaded: Any) -> None:
        """Takes what was read."""
        for path, place in places_in(self.own, self._tree):
            leaf, value = value_at(self._tree, path), value_at(loaded, place)
            self._values[path] = value
            if is_sharded_object(leaf):
                self.loaded_objects[object_id_of(leaf)] = value
            elif self._is_shared(leaf):
                self.loaded_tensors[shard_id_of(leaf)] = value

    def _is_shared(self, leaf: Any) -> bool:
        """Whether a shard is the one that the distribution knows by its id: not an empty or another one at the same place."""
        if self.distribution is None:
            return False
        described = self.distribution.shard_to_metadata.get(shard_id_of(leaf))
        return described is not None and has_elements(leaf) and is_same_part(leaf, described)

    def whole(self, tensors: dict[ShardId, Any], objects: dict[ObjectId, Any]) -> Any:
        """The values of the request. Several leaves of one shard are filled alike."""
        for path, leaf in leaves_with_paths(self._tree):
            if path in self._values:
                continue
            if is_sharded_object(leaf):
                self._values[path] = objects[object_id_of(leaf)]
                continue
            found = tensors[shard_id_of(leaf)]
            if leaf is not self.absent_tensors[shard_id_of(leaf)]:  # asked for more than once
                found = found.clone() if leaf.data is None else leaf.data.detach().copy_(found)
            self._values[path] = found
        return filled(self._tree, self._values)
