# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint holds, without its data, or all of it; and a checkpoint without some of its tensors."""
from __future__ import annotations

from typing import Any

from ...errors import InvalidArgumentError
from ._directory import Directory
from .loading import load
from .saving import CONTENT_METADATA
from .strategies.unsharded import load_common_state_dict
from .strategies.torch_dist import TorchDistLoadShardedStrategy


def load_tensors_metadata(checkpoint_dir: Any, sharded_strategy: Any = None) -> dict[str, Any]:
    """A ShardedTensor without data, and not sharded, for each stored tensor, by key. Each process for itself."""
    strategy = TorchDistLoadShardedStrategy() if sharded_strategy is None else sharded_strategy
    found: dict[str, Any] = strategy.load_tensors_metadata(Directory(checkpoint_dir).path)
    return found


def load_sharded_metadata(checkpoint_dir: Any, sharded_strategy: Any = None, common_strategy: Any = None) -> dict[str, Any]:
    """The same, and a ShardedObject without data for each stored object, by unique_key. It is a request of everything.

    Args:
        common_strategy: accepted; objects are stored with the tensors.
    """
    strategy = TorchDistLoadShardedStrategy() if sharded_strategy is None else sharded_strategy
    found: dict[str, Any] = strategy.load_sharded_metadata(Directory(checkpoint_dir).path)
    return found


def load_plain_tensors(checkpoint_dir: Any) -> Any:
    """All tensors, whole and in host memory, by key, and the common state. Collective; each rank gets everything."""
    return load(load_tensors_metadata(checkpoint_dir), checkpoint_dir, validate_access_integrity=False)


def load_content_metadata(checkpoint_dir: Any = None, *, preloaded_state_dict: Any = None) -> Any:
    """What save was given as content_metadata; None where it was given nothing. Each process for itself.

    Args:
        preloaded_state_dict: a common state or a loaded state dict, in which it is looked for instead.
    Raises:
        InvalidArgumentError: neither argument.
    """
    if preloaded_state_dict is None:
        if checkpoint_dir is None:
            raise InvalidArgumentError("Both checkpoint_dir and loaded_state_dict cannot be None",
                                       {"parameter": "checkpoint_dir"})
        preloaded_state_dict = load_common_state_dict(checkpoint_dir)
    return preloaded_state_dict.get(CONTENT_METADATA)


def remove_sharded_tensors(checkpoint_dir: Any, key_prefix: str) -> None:
    """Removes entries by the prefix of their keys, and files that hold nothing else. One process calls it; see
    TorchDistLoadShardedStrategy.remove_sharded_tensors."""
    TorchDistLoadShardedStrategy().remove_sharded_tensors(Directory(checkpoint_dir).path, key_prefix)
