# SPDX-License-Identifier: Apache-2.0
"""Errors of the torch planners: each derives from an error of shardwright and from the built-in type that torch's own
planner raises in the same place, so that `except` clauses written for either catch it. Texts keep the words of torch."""
from __future__ import annotations

from ....errors import DataLossError, FailedPreconditionError, InvalidArgumentError, MissingNameError, PermissionDeniedError


class MissingKeyError(MissingNameError, RuntimeError):
    """A name of the state is not in the checkpoint."""


class PlanConflictError(InvalidArgumentError, AssertionError, AttributeError):
    """Two ranks, or two items of one rank, describe one name in ways that cannot both be stored."""


class PlanCheckError(InvalidArgumentError, AssertionError):
    """A plan, state or metadata lacks what the call needs."""


class InvalidPlanError(InvalidArgumentError):
    """A plan, a tensor's description or a lookup is wrong; a ValueError, as in torch."""


class UnfilledError(DataLossError, ValueError):
    """The checkpoint holds no bytes for a part of a tensor that is wanted, or several that may differ."""


class UntrustedObjectError(PermissionDeniedError, RuntimeError):
    """A stored object uses classes or functions that are neither known nor allowed."""


class DamagedObjectError(DataLossError, RuntimeError):
    """The bytes of a stored object contradict themselves."""


class StalePlanError(FailedPreconditionError):
    """Caches of two ranks do not know the same plans; the next save sends them whole."""
