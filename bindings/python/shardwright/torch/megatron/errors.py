# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the Megatron names: ours and the original's kind at once.

`CheckpointingException` is the original's class name. What the original reports by an assertion or a KeyError is that
too. When megatron-core is imported in this process, what is raised is also an instance of its own
CheckpointingException, so that handlers written for it catch ours.
"""
from __future__ import annotations

import difflib
import sys
from typing import Any

from ...errors import FailedPreconditionError, InvalidArgumentError, MissingNameError, ShardwrightError

_NEAREST_MAX = 5
_ORIGINAL_MODULE = "megatron.core.dist_checkpointing.core"


class CheckpointingException(ShardwrightError):
    """A wrong descriptor, request or checkpoint; the name that Megatron's users catch."""

    def __reduce__(self) -> tuple[object, ...]:
        return (_restored, (_public(type(self)), self.message, self.details))


class ShardingError(CheckpointingException, InvalidArgumentError):
    """A descriptor contradicts itself or another one, or shards overlap or leave a hole."""


class ShardingAssertionError(ShardingError, AssertionError):
    """A ShardingError that the original reports by an assertion."""


class PlannerStateError(CheckpointingException, FailedPreconditionError, AssertionError):
    """A planner was asked for what its options exclude."""


class ChangedStateError(CheckpointingException, FailedPreconditionError):
    """A save was to use the plan of an earlier one, and the state is not described as it was then."""


class MissingKeyError(CheckpointingException, MissingNameError):
    """A requested key is not in the checkpoint; detail `nearest` has up to five keys that look like it."""


_combined: dict[type[CheckpointingException], type[CheckpointingException]] = {}


def _class_to_raise(kind: type[CheckpointingException]) -> type[CheckpointingException]:
    """`kind`, combined with the original's class where that is imported."""
    original: Any = getattr(sys.modules.get(_ORIGINAL_MODULE), "CheckpointingException", None)
    if original is None:
        return kind
    if kind not in _combined:
        _combined[kind] = type(kind.__name__, (kind, original), {"__doc__": kind.__doc__, "__module__": kind.__module__})
    return _combined[kind]


def _public(kind: type[Any]) -> type[CheckpointingException]:
    """The importable class behind one that was combined with the original's."""
    here = sys.modules[__name__]
    importable = (base for base in kind.__mro__ if getattr(here, base.__name__, None) is base)
    found: type[CheckpointingException] = next(importable)
    return found


def _restored(kind: type[CheckpointingException], message: str, details: dict[str, str]) -> CheckpointingException:
    return failure(kind, message, **details)


def failure(kind: type[CheckpointingException], message: str, **details: Any) -> CheckpointingException:
    """An exception of `kind`, to be raised; `details` become text."""
    return _class_to_raise(kind)(message, {name: str(value) for name, value in details.items()})


def missing_key(key: str, stored: list[str]) -> CheckpointingException:
    """A requested key is not among the stored ones."""
    nearest = difflib.get_close_matches(key, stored, n=_NEAREST_MAX, cutoff=0.0)
    return failure(MissingKeyError, f"{key} from model not in state dict; the nearest of {len(stored)} keys: {nearest}", key=key,
                   nearest=", ".join(nearest))


def stored_as_object(key: str) -> CheckpointingException:
    """A tensor is requested where no tensor is stored."""
    return failure(ShardingError, f"{key} is stored as an object and requested as a tensor", key=key)


def other_shape(key: str, stored: Any, wanted: Any) -> CheckpointingException:
    """A tensor is stored in another shape than that of the request."""
    return failure(ShardingError, f"Global shape mismatch for loaded ({stored}) and expected ({wanted}) tensor for key {key}", key=key)


def require(condition: bool, message: str, **details: Any) -> None:
    """Raises ShardingAssertionError with `message` where the original asserts. Not switched off by python -O."""
    if not condition:
        raise failure(ShardingAssertionError, message, **details)
