# SPDX-License-Identifier: Apache-2.0
"""Strategies that megatron-core's save and load take, and its queues of saves in the background."""
from __future__ import annotations

from .._directory import MSC_PREFIX
from .async_calls import AsyncCaller, AsyncCallsQueue, AsyncRequest, PersistentAsyncCaller, TemporalAsyncCaller
from .base import (AsyncSaveShardedStrategy, LoadShardedStrategy, LoadStrategyBase, SaveShardedStrategy, SaveStrategyBase,
                   StrategyAction, get_default_strategy, register_default_strategy)
from .asynchronous import get_async_strategy
from .torch_dist import (TorchDistLoadShardedStrategy, TorchDistSaveShardedStrategy, _get_filesystem_reader,
                         _metadata_fn, register_default_torch_strategies)

__all__ = ["MSC_PREFIX", "AsyncCaller", "AsyncCallsQueue", "AsyncRequest", "AsyncSaveShardedStrategy", "LoadShardedStrategy",
           "LoadStrategyBase", "PersistentAsyncCaller", "SaveShardedStrategy", "SaveStrategyBase", "StrategyAction",
           "TemporalAsyncCaller", "TorchDistLoadShardedStrategy", "TorchDistSaveShardedStrategy", "_get_filesystem_reader",
           "_metadata_fn", "get_async_strategy", "get_default_strategy", "register_default_strategy", "register_default_torch_strategies"]
