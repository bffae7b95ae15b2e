# SPDX-License-Identifier: Apache-2.0
"""Megatron-core's sharded state dicts and planners, under the original's names.

    shard = ShardedTensor.from_rank_offsets("w", local_tensor, (0, rank, world_size))
    torch.distributed.checkpoint.save(mcore_to_pyt_state_dict({"w": [shard]}), checkpoint_id=path,
                                      planner=MCoreSavePlanner(flatten_state_dict=False))

Descriptors of ours and of megatron-core are taken alike. Nothing that a caller passes is changed, except by functions
whose purpose that is (apply_factories, the in-place maps). What differs from the original on purpose:
docs/compatibility.md.
"""
from __future__ import annotations

from .checkpointable import CheckpointableShardedTensor, LocalShardsContainer
from .conversion import _unwrap_pyt_sharded_tensor, mcore_to_pyt_state_dict, sharded_tensor_to_torch_sharded_tensor
from .distribution import (ShardDistribution, determine_main_replica_uniform_distribution,
                           distribute_main_replicas_with_precomputed_distribution, distribute_shards_to_ranks,
                           main_replica_distribution)
from .errors import CheckpointingException
from .factories import ShardedTensorFactory, apply_factories, apply_factory_merges, with_factories_applied
from .flattening import (_replace_sharded_keys_with_state_dict_keys, _replace_state_dict_keys_with_sharded_keys,
                         _restore_dict_types, flatten_state_dict, unflatten_state_dict)
from .kinds import is_main_replica
from .planners import MCoreLoadPlanner, MCoreSavePlanner
from .selection import (add_prefix_for_sharding, apply_prefix_mapping, extract_nonpersistent, extract_sharded_base,
                        extract_sharded_tensors, extract_sharded_tensors_and_factories,
                        extract_sharded_tensors_or_nonpersistent, replace_prefix_for_sharding)
from .sharded_object import LocalNonpersistentObject, ShardedObject
from .sharded_tensor import ShardedBase, ShardedTensor
from .strategies import (MSC_PREFIX, AsyncCallsQueue, AsyncRequest, PersistentAsyncCaller, StrategyAction, TemporalAsyncCaller,
                         TorchDistLoadShardedStrategy, TorchDistSaveShardedStrategy, _get_filesystem_reader, _metadata_fn,
                         get_default_strategy, install, register_default_strategy, register_default_torch_strategies, uninstall)
from .strictness import StrictHandling, parse_strict_flag, validate_integrity_and_strict_load
from .trees import (dict_list_map_inplace, dict_list_map_outplace, dict_map, dict_map_with_key, diff,
                    extract_matching_values, join_like, map_reduce, merge, nested_items_iter, nested_values)
from .validation import determine_global_metadata, validate_sharding_integrity

__all__ = [
    "AsyncCallsQueue", "AsyncRequest", "CheckpointableShardedTensor", "CheckpointingException",
    "LocalNonpersistentObject", "LocalShardsContainer", "MCoreLoadPlanner", "MCoreSavePlanner", "MSC_PREFIX",
    "PersistentAsyncCaller", "ShardDistribution", "ShardedBase", "ShardedObject", "ShardedTensor",
    "ShardedTensorFactory", "StrategyAction", "StrictHandling", "TemporalAsyncCaller", "TorchDistLoadShardedStrategy",
    "TorchDistSaveShardedStrategy", "_get_filesystem_reader", "_metadata_fn",
    "_replace_sharded_keys_with_state_dict_keys", "_replace_state_dict_keys_with_sharded_keys", "_restore_dict_types",
    "_unwrap_pyt_sharded_tensor", "add_prefix_for_sharding", "apply_factories", "apply_factory_merges",
    "apply_prefix_mapping", "determine_global_metadata", "determine_main_replica_uniform_distribution",
    "dict_list_map_inplace", "dict_list_map_outplace", "dict_map", "dict_map_with_key", "diff",
    "distribute_main_replicas_with_precomputed_distribution", "distribute_shards_to_ranks", "extract_matching_values",
    "extract_nonpersistent", "extract_sharded_base", "extract_sharded_tensors",
    "extract_sharded_tensors_and_factories", "extract_sharded_tensors_or_nonpersistent", "flatten_state_dict",
    "get_default_strategy", "install", "is_main_replica", "join_like", "main_replica_distribution", "map_reduce",
    "mcore_to_pyt_state_dict", "merge", "nested_items_iter", "nested_values", "parse_strict_flag",
    "register_default_strategy", "register_default_torch_strategies", "replace_prefix_for_sharding",
    "sharded_tensor_to_torch_sharded_tensor", "unflatten_state_dict", "uninstall", "validate_integrity_and_strict_load",
    "validate_sharding_integrity", "with_factories_applied",
]
