# SPDX-License-Identifier: Apache-2.0
"""What save and load raise: torch's CheckpointException with the failing ranks, a ShardwrightError, and the type of the
first cause, so that `except` clauses written for any of them catch it."""
from __future__ import annotations

import builtins
import functools
import traceback
from collections.abc import Mapping
from typing import Any, cast

from torch.distributed.checkpoint.api import CheckpointException

from ...errors import (AlreadyExistsError, DataLossError, HostExceptionError, InvalidArgumentError, MissingNameError, NotFoundError,
                       ShardwrightError)
from .planner._errors import InvalidPlanError, MissingKeyError, UnfilledError

Failure = tuple[BaseException, traceback.StackSummary]


class CheckpointError(CheckpointException, ShardwrightError):
    """A save or load failed on at least one rank; the same on all ranks.

    Attributes: `failures`, rank to (exception, stack), in which the cause of the lowest failing rank comes first; `step`,
    what was being done; and those of ShardwrightError, of that cause.
    """

    def __init__(self, step: str, failures: Mapping[int, Failure]) -> None:
        cause = next(iter(failures.values()))[0]
        CheckpointException.__init__(self, step, dict(failures))
        self.step = step
        self.message = str(cause)
        self.details: dict[str, str] = dict(getattr(cause, "details", None) or {})
        self.retryable = bool(getattr(cause, "retryable", False))
        self.code = cause.code if isinstance(cause, ShardwrightError) else HostExceptionError.code
        self.status = getattr(cause, "status", HostExceptionError.status)

    def __str__(self) -> str:
        return CheckpointException.__str__(self)

    def __reduce__(self) -> tuple[object, ...]:
        return failed, (self.step, self._failures)


class CheckpointExistsError(AlreadyExistsError, RuntimeError):
    """There is a checkpoint, and it was not to be replaced."""


class NoCheckpointError(NotFoundError, AssertionError):
    """There is no checkpoint."""


@functools.cache
def _kind_for(cause: Any) -> type[CheckpointError]:
    """The class that is also of the cause's kind, as far as Python can lay out both in one object."""
    for kind in cause.__mro__:
        known = issubclass(kind, ShardwrightError) or getattr(builtins, kind.__name__, None) is kind
        if not known or kind in (ShardwrightError, Exception, BaseException, object) or not issubclass(kind, Exception):
            continue
        try:
            return type("CheckpointError", (CheckpointError, kind), {"__module__": __name__, "__doc__": CheckpointError.__doc__})
        except TypeError:  # two layouts, or an order of bases that contradicts itself
            continue
    return CheckpointError


def failed(step: str, failures: Mapping[int, Failure]) -> CheckpointError:
    """The error of a step that failed on these ranks."""
    ordered = dict(sorted(failures.items()))
    return _kind_for(cast(Any, type(next(iter(ordered.values()))[0])))(step, ordered)


def wrapped(error: BaseException) -> Failure:
    """An exception with its stack, as it travels between ranks and stands in `failures`."""
    stack = traceback.extract_tb(error.__traceback__)
    for frame in stack:
        if hasattr(frame, "_code"):
            object.__setattr__(frame, "_code", None)  # code objects are not pickled
    return error, stack


def of_call(step: str, error: ShardwrightError, rank: int) -> CheckpointError:
    """The error of a call of the library, which is the same on all ranks and names the one that failed first."""
    named = error.details.get("rank", "")
    made = failed(step, {int(named) if named.isdecimal() else rank: wrapped(as_torch(error))})
    made.__cause__ = error
    return made


def as_torch(error: ShardwrightError) -> ShardwrightError:
    """The error with the type and the words by which torch's users know it; others as they are."""
    name = error.details.get("tensor", "")
    kept: dict[str, Any] = {"code": error.code, "retryable": error.retryable}
    if isinstance(error, MissingNameError) and name:
        return MissingKeyError(f"Missing key in checkpoint state_dict: {name}. {error.message}", error.details, **kept)
    if isinstance(error, InvalidArgumentError) and error.details.get("parameter") == "shape":
        saved, wanted = error.details.get("found", "?"), error.details.get("expected", "?")
        return InvalidPlanError(f"Size mismatch between saved torch.Size({saved}) and current: torch.Size({wanted}) for {name}",
                                error.details, **kept)
    if isinstance(error, AlreadyExistsError):
        return CheckpointExistsError(f"Checkpoint already exists and self.overwrite=False. {error.message}", error.details, **kept)
    if type(error) is NotFoundError:
        return NoCheckpointError(f"metadata is None; global metadata read failed: {error.message}", error.details, **kept)
    if isinstance(error, DataLossError) and "box" in error.details and not error.details.get("file"):
        return UnfilledError(error.message, error.details, **kept)
    return error
