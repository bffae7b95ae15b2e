# SPDX-License-Identifier: Apache-2.0
"""ShardedTensorFactory: a tensor that is stored as a subtree of other shards, and merged from that subtree after a
load."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ...errors import InvalidArgumentError
from .kinds import is_factory
from .sharded_tensor import ReplicaId, ShardedBase
from .trees import dict_list_map_inplace, dict_list_map_outplace

BuildFunction = Callable[[str, Any, ReplicaId, slice | None], Any]
MergeFunction = Callable[[Any], Any]


@dataclass
class ShardedTensorFactory(ShardedBase):
    """How a tensor becomes a subtree and back.

    Attributes:
        key, data, replica_id, flattened_range: what build_fn gets.
        build_fn: (key, data, replica_id, flattened_range) -> subtree of ShardedTensors.
        merge_fn: loaded subtree -> value.
    """

    key: str
    data: Any
    build_fn: BuildFunction
    merge_fn: MergeFunction
    replica_id: ReplicaId = 0
    flattened_range: slice | None = None

    def build(self) -> Any:
        """The subtree."""
        return self.build_fn(self.key, self.data, self.replica_id, self.flattened_range)

    def validate_metadata_integrity(self) -> None:
        """Nothing to hold: what counts are the shards that it builds."""

    def without_data(self) -> ShardedTensorFactory:
        """A copy whose `data` is None."""
        return replace(self, data=None)


def _built(value: Any) -> Any:
    return value.build() if is_factory(value) else value


def apply_factories(sharded_state_dict: Any) -> None:
    """Puts what each factory builds in its place, in the given tree."""
    dict_list_map_inplace(_built, sharded_state_dict)


def with_factories_applied(sharded_state_dict: Any) -> Any:
    """A tree with what the factories build; the given tree stays as it is."""
    return dict_list_map_outplace(_built, sharded_state_dict)


def apply_factory_merges(x1: Any, x2: Any, key: tuple[Any, ...] = ()) -> Any:
    """Replaces loaded subtrees of `x1`, in place, by what the factories at the same positions of `x2` merge them to.

    `x2` may hold a list of `x1` as a dict from position to value.

    Raises:
        InvalidArgumentError: the trees differ in structure; names the position.
    """
    if is_factory(x2):
        return x2.merge_fn(x1)
    if isinstance(x1, dict) and isinstance(x2, dict):
        absent = [name for name in x2 if name not in x1]
        if absent:
            raise _differs("Different dict keys encountered in `apply_factory_merges`: "
                           f"{absent[:5]} were not loaded", key)
        positions: Any = x2.items()
    elif isinstance(x1, list) and isinstance(x2, list):
        if len(x1) != len(x2):
            raise _differs(f"Cannot merge two lists with different lengths ({len(x1)} and {len(x2)})", key)
        positions = enumerate(x2)
    elif isinstance(x1, list) and isinstance(x2, dict):
        for name in x2:
            if not isinstance(name, int):
                raise _differs(f"Invalid dict key {name!r} non-integer type encountered in a list-dict merge", key)
            if not 0 <= name < len(x1):
                raise _differs(f"Dict key {name} out of bound for list of length {len(x1)}", key)
        positions = x2.items()
    else:
        raise _differs("Duplicate non-dict and non-list values encountered: "
                       f"{type(x1).__name__} and {type(x2).__name__}", key)
    for name, value in positions:
        x1[name] = apply_factory_merges(x1[name], value, (*key, name))
    return x1


def _differs(text: str, key: tuple[Any, ...]) -> InvalidArgumentError:
    where = ".".join(map(str, key)) or "the top"
    return InvalidArgumentError(f"{text} (at {where})", {"path": where})
