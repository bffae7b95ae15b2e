# SPDX-License-Identifier: Apache-2.0
"""Errors of the planners that are also of the built-in class which HyperParallel raises in the same situation.

Where one of the library's classes already is that built-in class (InvalidArgumentError is a ValueError,
FailedPreconditionError a RuntimeError, UnimplementedError a NotImplementedError) it is used as it is.
"""
from __future__ import annotations

from ..errors import DataLossError, InvalidArgumentError, MissingNameError, OutOfRangeError, PermissionDeniedError


class MissingEntryError(MissingNameError, RuntimeError):
    """A wanted name is not in the checkpoint."""


class UnknownNameError(MissingNameError):
    """A read item names a tensor that the state does not hold."""


class IncompleteTensorError(DataLossError, RuntimeError):
    """The stored chunks of a tensor do not give every wanted element exactly once."""


class OutsideTensorError(OutOfRangeError, ValueError):
    """A chunk that leaves its tensor."""


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """A value of a type that the call cannot take, or values whose types differ."""


class UnsafePickleError(PermissionDeniedError, RuntimeError):
    """A stored object is a pickle, and the caller has not said that pickles may be run."""
