# SPDX-License-Identifier: Apache-2.0
"""Loading the common state, from either of the layouts that megatron-core has for it."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch.distributed as dist

from .._directory import Directory
from ..unsharded import NO_TRUST, Trust, common_object, no_common_state, read_common_file
from .base import LoadStrategyBase
from .torch_dist import TorchDistLoadShardedStrategy


class TorchCommonLoadStrategy(LoadStrategyBase):
    """The strategy of the backend ("torch", 1) for common states."""

    def load_common(self, checkpoint_dir: Any) -> dict[Any, Any]:
        """The common state of a directory. Each process for itself."""
        return load_common_state_dict(checkpoint_dir)


def load_common_state_dict(checkpoint_dir: Any, *, trust_pickles: bool = False, allow_types: Iterable[Any] = ()) -> dict[Any, Any]:
    """The common state of a directory, in either layout. Each process for itself.

    Raises:
        NoCommonStateError: there is none. PermissionDeniedError: it uses a class that is neither known nor allowed.
    """
    directory, trust = Directory(checkpoint_dir), Trust(trust_pickles, tuple(allow_types))
    found = read_common_file(directory, trust)
    if found is None:
        check_common_object(directory.path)
        found = _strategy(trust).load_alone({"common": common_object(None, 0)}, directory.path)["common"]
    return found


def check_common_object(checkpoint_dir: str) -> None:
    """NoCommonStateError where the index has no common state."""
    directory = Directory(checkpoint_dir)
    wanted = common_object(None, 0).unique_key
    if directory.version(".metadata") is None or wanted not in _strategy(NO_TRUST).load_sharded_metadata(directory.path):
        raise no_common_state(directory.path)


def over_ranks(checkpoint_dir: str, trust: Trust, group: dist.ProcessGroup | None) -> dict[Any, Any]:
    """The common state of an index that has one. Collective."""
    found: dict[Any, Any] = _strategy(trust).load_over({"common": common_object(None, 0)}, checkpoint_dir, group)["common"]
    return found


def _strategy(trust: Trust) -> TorchDistLoadShardedStrategy:
    return TorchDistLoadShardedStrategy(trust_pickles=trust.everything, allow_types=trust.types)
