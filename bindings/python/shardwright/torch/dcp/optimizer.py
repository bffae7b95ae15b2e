# SPDX-License-Identifier: Apache-2.0
"""Optimizer states that FSDP shards, loaded in the shape of the model's state: torch's function with our planner."""
from __future__ import annotations

import types
from typing import Any

from torch.distributed.checkpoint import optimizer as _original

from ..._pickles import DamagedPickle, UnsafePickle, refusal
from .. import _stored_objects
from .planner import DamagedObjectError, DefaultLoadPlanner, UntrustedObjectError, set_element

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(model_state_dict: Any, optimizer_key: str, storage_reader: Any, planner: Any = None) -> Any:
    """The optimizer's state under `optimizer_key`, sharded as `model_state_dict` is. Arguments as in torch; without a planner
    ours is used, which runs nothing that is stored. Under two-dimensional parallelism torch plans by itself; what it reads is
    not run either."""
    return _original.load_sharded_optimizer_state_dict(model_state_dict, optimizer_key, _Careful(storage_reader),  # type: ignore[arg-type]
                                                       DefaultLoadPlanner() if planner is None else planner)


class _Careful:
    """A reader; planners that would run what is stored are given the values that it stands for."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def read_data(self, plan: Any, planner: Any) -> Any:
        """As the reader does."""
        if type(planner) is _original._ReaderWithOffset:
            planner.load_bytes = types.MethodType(_load_value, planner)  # type: ignore[method-assign]
        return self._reader.read_data(plan, planner)


def _load_value(planner: Any, read_item: Any, value: Any) -> None:
    name = read_item.dest_index.fqn
    try:
        found = _stored_objects.read(value, False, ())
    except UnsafePickle as e:
        raise refusal(name, e, "trust_pickles", UntrustedObjectError) from e
    except DamagedPickle as e:
        raise DamagedObjectError(f"the object {name} cannot be read: {e}", {"tensor": name}) from e
    if planner.flatten_state_dict:
        set_element(planner.original_state_dict, planner.mappings[name], found)
    else:
        planner.state_dict[name] = found


def __getattr__(name: str) -> Any:
    return getattr(_original, name)
