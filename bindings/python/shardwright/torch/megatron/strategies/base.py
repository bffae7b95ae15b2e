# SPDX-License-Identifier: Apache-2.0
"""What a strategy is, and which ones a backend has, under megatron-core's names.

Where megatron-core is imported, the classes here count as its own of the same name, so that its functions take ours.
"""
from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from enum import Enum
from pathlib import Path
from typing import Any

from ..errors import CheckpointingException, failure

_ORIGINAL_MODULE = "megatron.core.dist_checkpointing.strategies.base"


class StrategyAction(Enum):
    """What a strategy is for."""

    LOAD_COMMON = "load_common"
    LOAD_SHARDED = "load_sharded"
    SAVE_COMMON = "save_common"
    SAVE_SHARDED = "save_sharded"


_strategies: dict[tuple[StrategyAction, str, int], Any] = {}


def get_default_strategy(action: StrategyAction, backend: str, version: int) -> Any:
    """The strategy that is registered for a backend. CheckpointingException where there is none."""
    if not _strategies:
        _register_own()
    found = _strategies.get((action, backend, version))
    if found is None:
        known = sorted(f"({name!r}, {number})" for kind, name, number in _strategies if kind == action)
        raise failure(CheckpointingException, f"no strategy is registered for {action.value} of ({backend!r}, {version}); "
                      f"there are {', '.join(known) or 'none'}", backend=backend, version=version)
    return found


def register_default_strategy(action: StrategyAction, backend: str, version: int, strategy: Any) -> None:
    """Makes a strategy the default of a backend, in place of what was registered before."""
    if not _strategies:
        _register_own()
    _strategies[action, backend, version] = strategy


def _register_own() -> None:
    """The strategies of the library, which are made of what is here."""
    from .unsharded import TorchCommonLoadStrategy
    from .torch_dist import TorchDistLoadShardedStrategy, TorchDistSaveShardedStrategy
    _strategies[StrategyAction.LOAD_COMMON, "torch", 1] = TorchCommonLoadStrategy()
    _strategies[StrategyAction.LOAD_SHARDED, "torch_dist", 1] = TorchDistLoadShardedStrategy()
    _strategies[StrategyAction.SAVE_SHARDED, "torch_dist", 1] = TorchDistSaveShardedStrategy("torch_dist", 1)


class _Strategy(ABC):
    def __new__(cls, *_: Any, **__: Any) -> Any:
        _tell_original(cls)
        return super().__new__(cls)

    @property
    def can_handle_sharded_objects(self) -> bool:
        """Whether ShardedObjects go the same way as tensors."""
        return False


class LoadStrategyBase(_Strategy):
    """A way to load."""

    def check_backend_compatibility(self, loaded_backend: str) -> None:
        """Raises where a checkpoint of that backend cannot be loaded."""

    def check_version_compatibility(self, loaded_version: int) -> None:
        """Raises where a checkpoint of that version cannot be loaded."""


class SaveStrategyBase(_Strategy):
    """A way to save.

    Args:
        backend, version: what metadata.json says of the checkpoint.
    """

    def __init__(self, backend: str, version: int) -> None:
        self.backend = backend
        self.version = version

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.backend!r}, {self.version})"


class LoadShardedStrategy(LoadStrategyBase):
    """Loads what is sharded."""

    @abstractmethod
    def load(self, sharded_state_dict: Any, checkpoint_dir: str | Path) -> Any:
        """The values of a request."""


class SaveShardedStrategy(SaveStrategyBase):
    """Saves what is sharded."""

    @abstractmethod
    def save(self, sharded_state_dict: Any, checkpoint_dir: str | Path) -> None:
        """Returns when the state is stored."""


class AsyncSaveShardedStrategy(SaveShardedStrategy):
    """Saves what is sharded, in the background too."""

    @abstractmethod
    def async_save(self, sharded_state_dict: Any, checkpoint_dir: str | Path) -> Any:
        """An AsyncRequest, which the caller schedules."""


def _tell_original(kind: type) -> None:
    """Once megatron-core has been imported, instances of ours pass its isinstance checks."""
    module = sys.modules.get(_ORIGINAL_MODULE)
    for base in kind.__mro__:
        original = getattr(module, base.__name__, None) if base.__module__ == __name__ else None
        if isinstance(original, type(ABC)) and not issubclass(base, original):
            original.register(base)
