# SPDX-License-Identifier: Apache-2.0
"""What a host may set of units and contexts, by the names of the C keys in lower case."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._options import word
from ..errors import InvalidArgumentError
from ..tensor import dtype_number

_RESHARD_AUTO, _RESHARD, _KEEP, _SECONDARY = range(4)
_SWITCHES = {"requires_gradient_sync": 0, "requires_all_reduce": 1, "reshard_after_backward": 4, "unshard_in_backward": 6,
             "keep_unsharded": 7}
_WORDS: dict[str, tuple[int, tuple[str, ...]]] = {"reduce_op": (5, ("average", "sum")), "unused_policy": (8, ("zero", "skip"))}
_OF_CONTEXT = {"max_inflight_reduce": 12, "prefetch_depth": 13, "is_last_backward": 14}
RESHARD_AFTER_FORWARD, SECONDARY_SIZE, DIVIDE_FACTOR = 2, 3, 9
UNUSED = {"zero": 0, "skip": 1}
_LAYOUTS = {"row": 0, "ragged": 1}


def reshard_fields(value: bool | int | None) -> dict[str, int]:
    """Policy and size for True (reshard), False (keep), None (reshard, but not the root) and n (keep 1/n of them)."""
    if value is None:
        return {"reshard_after_forward": _RESHARD_AUTO, "secondary_size": 0}
    if isinstance(value, bool):
        return {"reshard_after_forward": _RESHARD if value else _KEEP, "secondary_size": 0}
    return {"reshard_after_forward": _SECONDARY, "secondary_size": int(value)}


def unit_fields(*, param_dtype: str | None, reduce_dtype: str | None, output_dtype: str | None, grad_dtype: str | None,
                layout: str, reshard_after_forward: bool | int | None, unused: str, offload: bool,
                host_memory: bool) -> dict[str, Any]:
    """Options of a unit as the library has them."""
    dtypes = {"param_dtype": param_dtype, "reduce_dtype": reduce_dtype, "output_dtype": output_dtype, "grad_dtype": grad_dtype}
    fields: dict[str, Any] = {key: 0 if value is None else dtype_number(value) for key, value in dtypes.items()}
    return fields | reshard_fields(reshard_after_forward) | {
        "layout": word("layout", layout, _LAYOUTS), "unused": word("unused", unused, UNUSED),
        "flags": int(offload) | 2 * int(host_memory)}


def keys_of(name: str, value: Any) -> list[tuple[int, int | float]]:
    """Keys and numbers of one setting of a unit, in the order in which they are set. InvalidArgumentError naming it."""
    if name in _SWITCHES:
        if not isinstance(value, bool):
            raise InvalidArgumentError(f"{name} is {value!r}; it must be True or False", {"parameter": name})
        return [(_SWITCHES[name], int(value))]
    if name in _WORDS:
        key, words = _WORDS[name]
        if value not in words:
            raise InvalidArgumentError(f"{name} is {value!r}; it must be one of {', '.join(words)}", {"parameter": name})
        return [(key, words.index(value))]
    if name == "reshard_after_forward":
        fields = reshard_fields(value)
        return [(SECONDARY_SIZE, fields["secondary_size"]), (RESHARD_AFTER_FORWARD, fields["reshard_after_forward"])]
    if name == "divide_factor":
        return [(DIVIDE_FACTOR, float(value))]
    known = [*_SWITCHES, *_WORDS, "reshard_after_forward", "divide_factor"]
    raise InvalidArgumentError(f"there is no setting {name!r}; there are {', '.join(known)}", {"parameter": name})


# Of what ContextSettings holds, in its order.
CONTEXT_KEYS = tuple(_OF_CONTEXT[name] for name in ("max_inflight_reduce", "prefetch_depth", "is_last_backward"))


def key_of_context(name: str) -> int | None:
    """The key of a setting of contexts, None for one of units."""
    return _OF_CONTEXT.get(name)


def switch_key(name: str) -> int:
    """The key whose value is read as a number."""
    keys = {**_SWITCHES, "reshard_after_forward": RESHARD_AFTER_FORWARD, "secondary_size": SECONDARY_SIZE,
            **{word: key for word, (key, _) in _WORDS.items()}}
    if name not in keys:
        raise InvalidArgumentError(f"there is no setting {name!r}; there are {', '.join(keys)}", {"parameter": name})
    return keys[name]


@dataclass(frozen=True)
class UnitSettings:
    """What a unit is set to, by its options and by what was set since; values as `Unit.set` takes them, but that divide_factor is 0
    for the number of ranks that share data."""

    requires_gradient_sync: bool
    requires_all_reduce: bool
    reshard_after_forward: bool | int | None
    reshard_after_backward: bool
    reduce_op: str
    divide_factor: float
    unshard_in_backward: bool
    keep_unsharded: bool
    unused_policy: str


@dataclass(frozen=True)
class ContextSettings:
    """What a context is set to; values as `Hsdp.set` takes them."""

    max_inflight_reduce: int
    prefetch_depth: int
    is_last_backward: bool


def reshard_value(policy: int, size: int) -> bool | int | None:
    """What reshard_fields makes of it."""
    return {_RESHARD_AUTO: None, _RESHARD: True, _KEEP: False}.get(policy, size)


def value_of(name: str, number: int) -> Any:
    """What a number of the library means in Python."""
    if name in _SWITCHES:
        return bool(number)
    if name in _WORDS:
        return _WORDS[name][1][number]
    return number
