# SPDX-License-Identifier: Apache-2.0
"""Megatron-core's dist_checkpointing under the original's names, without megatron-core.

    shard = ShardedTensor.from_rank_offsets("w", local_tensor, (0, rank, world_size))
    save({"w": shard, "iteration": 7}, path)
    state_dict = load({"w": shard}, path)

Descriptors of ours and of megatron-core are taken alike. Nothing that a caller passes is changed, except by functions
whose purpose that is (apply_factories, the in-place maps). What differs from the original on purpose:
docs/compatibility.md.
"""
from __future__ import annotations

from .checkpointable import CheckpointableShardedTensor, LocalShardsContainer
from .config import CheckpointingConfig, check_is_distributed_checkpoint, maybe_load_config, save_config
from .conversion import _unwrap_pyt_sharded_tensor, mcore_to_pyt_state_dict, sharded_tensor_to_torch_sharded_tensor
from .distribution import (ShardDistribution, determine_main_replica_uniform_distribution,
                           distribute_main_replicas_with_precomputed_distribution, distribute_shards_to_ranks,
                           main_replica_distribution)
from .errors import CheckpointingException
from .exchange import exchange_by_distribution
from .factories import ShardedTensorFactory, apply_factories, apply_factory_merges, with_factories_applied
from .flattening import (_replace_sharded_keys_with_state_dict_keys, _replace_state_dict_keys_with_sharded_keys,
                         _restore_dict_types, flatten_state_dict, unflatten_state_dict)
from .high_precision import force_all_tensors_to_non_fp8
from .installing import install, uninstall
from .integrity import save_integrity_manifest, verify_integrity_manifest
from .kinds import is_main_replica
from .loading import load
from .planners import MCoreLoadPlanner, MCoreSavePlanner
from .saving import save
from .selection import (add_prefix_for_sharding, apply_prefix_mapping, extract_nonpersistent, extract_sharded_base,
                        extract_sharded_tensors, extract_sharded_tensors_and_factories,
                        extract_sharded_tensors_or_nonpersistent, replace_prefix_for_sharding)
from .sharded_object import LocalNonpersistentObject, ShardedObject
from .sharded_tensor import ShardedBase, ShardedTensor
from .stored_metadata import (load_content_metadata, load_plain_tensors, load_sharded_metadata, load_tensors_metadata,
                              remove_sharded_tensors)
from .strategies import (MSC_PREFIX, AsyncCallsQueue, AsyncRequest, PersistentAsyncCaller, StrategyAction, TemporalAsyncCaller,
                         TorchDistLoadShardedStrategy, TorchDistSaveShardedStrategy, _get_filesystem_reader, _metadata_fn,
                         get_async_strategy, get_default_strategy, register_default_strategy, register_default_torch_strategies)
from .strategies.unsharded import TorchCommonLoadStrategy, load_common_state_dict
from .strategies.fully_parallel import FullyParallelLoadStrategyWrapper, FullyParallelSaveStrategyWrapper
from .strategies.pickled_names import MCoreMetadata, MCoreSavePlan
from .strictness import StrictHandling, parse_strict_flag, validate_integrity_and_strict_load
from .trees import (dict_list_map_inplace, dict_list_map_outplace, dict_map, dict_map_with_key, diff,
                    extract_matching_values, join_like, map_reduce, merge, nested_items_iter, nested_values)
from .validation import determine_global_metadata, validate_sharding_integrity

__all__ = [
    "AsyncCallsQueue", "AsyncRequest", "CheckpointableShardedTensor", "CheckpointingConfig",
    "CheckpointingException", "FullyParallelLoadStrategyWrapper", "FullyParallelSaveStrategyWrapper",
    "LocalNonpersistentObject", "LocalShardsContainer", "MCoreLoadPlanner", "MCoreMetadata", "MCoreSavePlan",
    "MCoreSavePlanner", "MSC_PREFIX", "PersistentAsyncCaller", "ShardDistribution", "ShardedBase", "ShardedObject",
    "ShardedTensor", "ShardedTensorFactory", "StrategyAction", "StrictHandling", "TemporalAsyncCaller",
    "TorchCommonLoadStrategy", "TorchDistLoadShardedStrategy", "TorchDistSaveShardedStrategy",
    "_get_filesystem_reader", "_metadata_fn", "_replace_sharded_keys_with_state_dict_keys",
    "_replace_state_dict_keys_with_sharded_keys", "_restore_dict_types", "_unwrap_pyt_sharded_tensor",
    "add_prefix_for_sharding", "apply_factories", "apply_factory_merges", "apply_prefix_mapping",
    "check_is_distributed_checkpoint", "determine_global_metadata", "determine_main_replica_uniform_distribution",
    "dict_list_map_inplace", "dict_list_map_outplace", "dict_map", "dict_map_with_key", "diff",
    "distribute_main_replicas_with_precomputed_distribution", "distribute_shards_to_ranks",
    "exchange_by_distribution", "extract_matching_values", "extract_nonpersistent", "extract_sharded_base",
    "extract_sharded_tensors", "extract_sharded_tensors_and_factories", "extract_sharded_tensors_or_nonpersistent",
    "flatten_state_dict", "force_all_tensors_to_non_fp8", "get_async_strategy", "get_default_strategy", "install",
    "is_main_replica", "join_like", "load", "load_common_state_dict", "load_content_metadata", "load_plain_tensors",
    "load_sharded_metadata", "load_tensors_metadata", "main_replica_distribution", "map_reduce",
    "maybe_load_config", "mcore_to_pyt_state_dict", "merge", "nested_items_iter", "nested_values",
    "parse_strict_flag", "register_default_strategy", "register_default_torch_strategies", "remove_sharded_tensors",
    "replace_prefix_for_sharding", "save", "save_config", "save_integrity_manifest",
    "sharded_tensor_to_torch_sharded_tensor", "unflatten_state_dict", "uninstall",
    "validate_integrity_and_strict_load", "validate_sharding_integrity", "verify_integrity_manifest",
    "with_factories_applied",
]
