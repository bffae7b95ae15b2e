# SPDX-License-Identifier: Apache-2.0
"""Strategies that megatron-core's save and load take, and its queues of saves in the background."""
from __future__ import annotations

from .async_calls import AsyncCaller, AsyncCallsQueue, AsyncRequest, PersistentAsyncCaller, TemporalAsyncCaller
from .base import (AsyncSaveShardedStrategy, LoadShardedStrategy, LoadStrategyBase, SaveShardedStrategy, SaveStrategyBase,
                   StrategyAction, get_default_strategy, register_default_strategy)
from .installing import Installed, install, uninstall
from .torch_dist import (MSC_PREFIX, TorchDistLoadShardedStrategy, TorchDistSaveShardedStrategy, _get_filesystem_reader,
                         _metadata_fn, register_default_torch_strategies)

__all__ = ["MSC_PREFIX", "AsyncCaller", "AsyncCallsQueue", "AsyncRequest", "AsyncSaveShardedStrategy", "Installed",
           "LoadShardedStrategy",
           "LoadStrategyBase", "PersistentAsyncCaller", "SaveShardedStrategy", "SaveStrategyBase", "StrategyAction",
           "TemporalAsyncCaller", "TorchDistLoadShardedStrategy", "TorchDistSaveShardedStrategy", "_get_filesystem_reader",
           "_metadata_fn", "get_default_strategy", "install", "register_default_strategy", "register_default_torch_strategies",
           "uninstall"]
