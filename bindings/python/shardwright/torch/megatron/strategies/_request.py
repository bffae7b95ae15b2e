# SPDX-License-Identifier: Apache-2.0
"""What a load is asked for. The library fills it by itself: it plans, reads each stored byte once for all ranks of a node,
verifies digests. What it cannot describe (quantised tensors) or undo (stream transforms) goes step by step by a planner.
"""
from __future__ import annotations

from typing import Any

from .... import calls
from ....checkpoint import Checkpoint
from ....errors import InvalidArgumentError, MissingNameError, ShardwrightError, UnimplementedError
from ....state import State
from ... import _Prepared
from ...dcp._archives import Archives
from ...dcp._direct import Members, needs_stream_transform, prepared
from ...dcp._errors import as_torch
from ...dcp._place import Place
from ...dcp._steps import Steps
from .._allowed_types import allowed_types
from .._flattened_entries import refuse_unexplained
from ..checkpointable import _Boxes
from ..conversion import _unwrap_pyt_sharded_tensor, mcore_to_pyt_state_dict
from ..errors import ShardingError, failure, missing_key, other_shape, stored_as_object
from ..flattening import (_replace_sharded_keys_with_state_dict_keys, _replace_state_dict_keys_with_sharded_keys,
                          _restore_dict_types)
from ..kinds import is_sharded_tensor
from ..planners import MCoreLoadPlanner
from ..trees import nested_values
from ..unsharded import Trust
from ._described import ShardedState, ShardLeaves


class Request:
    """A sharded state dict to be filled from a place. One thread.

    Attributes: `wanted`, values for torch's checkpoint by global name, which a load fills or replaces.
    """

    def __init__(self, sharded_state_dict: Any, place: Place, trust: Trust) -> None:
        self._template, self._place, self._trust = sharded_state_dict, place, trust
        leaves = [leaf for leaf in nested_values(sharded_state_dict) if is_sharded_tensor(leaf)]
        grouped, self._paths, self._names = _replace_state_dict_keys_with_sharded_keys(sharded_state_dict)
        self.wanted = mcore_to_pyt_state_dict(grouped, is_loading=True)
        self._strict = [leaf for leaf in leaves if not leaf.allow_shape_mismatch]
        self._flexible = {leaf.key: leaf for leaf in leaves if leaf.allow_shape_mismatch}
        self._stored_shapes = self._shapes_of_flexible()

    def values(self) -> Any:
        """What was loaded, in the structure of the request."""
        unwrapped = {key: _unwrap_pyt_sharded_tensor(value) for key, value in self.wanted.items()}
        found = _replace_sharded_keys_with_state_dict_keys(unwrapped, self._paths, self._names)
        _restore_dict_types(found, self._template)
        return found

    def planner(self) -> MCoreLoadPlanner:
        """What asks for it step by step."""
        return MCoreLoadPlanner(shapes_validation_sharded_tensors=self._strict,
                                allow_shape_mismatch_sharded_tensors=self._flexible,
                                trust_pickles=self._trust.everything, allow_types=self._trust.types)

    def fill(self, members: Members, steps: Steps) -> bool:
        """Fills it by the library itself; False on all ranks, and nothing done, where on one of them that cannot be."""
        def state_of(rank: int) -> State:
            leaves = ShardLeaves(members.group, True, members.alone, self._stored_shapes)
            return ShardedState(self.wanted, leaves, rank, writable=True, archives=Archives(self._place),
                                trusted=self._trust.everything, allow_types=[*self._trust.types, *allowed_types()])

        made = prepared(members, state_of, writable=True, options={})
        return made is not None and bool(steps.together("read", lambda: self._read(made)))

    def _read(self, made: _Prepared) -> bool:
        try:
            calls.load(self._place.path, made.state, storage=self._place.storage, collective=made.collective, cast="allow")
        except UnimplementedError as e:
            if needs_stream_transform(e):
                return False
            raise
        except ShardwrightError as e:
            raise self._explained(e) from e
        return True

    # ---- what is stored ----

    def _shapes_of_flexible(self) -> dict[str, tuple[int, ...]]:
        """Stored shapes of the tensors whose shapes may differ."""
        if not self._flexible:
            return {}
        with self._place.open() as checkpoint:
            found = {key: _stored_shape(checkpoint, key) for key in self._flexible}
        for key, leaf in self._flexible.items():
            _refuse_other_form(key, found[key], leaf.global_shape)
        return found

    def _explained(self, error: ShardwrightError) -> ShardwrightError:
        """An error of the library in the words and with the type by which Megatron's users know it."""
        name = error.details.get("tensor", "")
        wanted = self.wanted.get(name)
        if not isinstance(wanted, _Boxes):
            return as_torch(error)
        is_of_shape = isinstance(error, InvalidArgumentError) and error.details.get("parameter") == "shape"
        if not is_of_shape and not isinstance(error, MissingNameError):
            return error
        try:
            with self._place.open() as checkpoint:
                shape = _stored_shape(checkpoint, name)
            _refuse_other_form(name, shape, wanted.size())
        except ShardwrightError as e:
            return e
        return other_shape(name, shape, tuple(wanted.size()))


def _stored_shape(checkpoint: Checkpoint, key: str) -> tuple[int, ...]:
    if key in checkpoint:
        return tuple(checkpoint.tensor(key).shape)
    objects = checkpoint.object_names()
    if key in objects:
        raise stored_as_object(key)
    raise missing_key(key, [*checkpoint.keys(), *objects])


def _refuse_other_form(key: str, stored: tuple[int, ...], wanted: Any) -> None:
    """Refuses a tensor whose shape may differ, but that is stored in as many dimensions only if it is flattened."""
    refuse_unexplained(key, stored, tuple(wanted))
    if len(stored) != len(wanted):
        raise failure(ShardingError, f"{key} has {len(stored)} dimensions where it is stored and {len(wanted)} in the request",
                      key=key)
