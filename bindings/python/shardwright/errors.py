# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class per status of the library, with the built-in class that Python code expects as extra base.

Each exception carries `code` (number), `status` (name), `message`, `details` (text to text), `retryable`, and the error
that caused it as `__cause__`, unless the message tells it. An exception that a host's own storage or collective raised comes out as itself.
"""
from __future__ import annotations

import builtins
import concurrent.futures
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence

HOST_EXCEPTION = 34
_KEPT_EXCEPTIONS_MAX = 64
_KEY = "host_exception"
_NAMES = frozenset(("tensor", "object"))  # details that name an entry


class ShardwrightError(Exception):
    """Base of all errors of the library.

    Attributes: `code` (status number), `status` (its name), `message`, `details`, `retryable`.
    """

    code = 2
    status = "UNKNOWN"

    def __init__(self, message: str = "", details: Mapping[str, str] | None = None, *, code: int | None = None,
                 retryable: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})
        self.retryable = retryable
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return self.message or self.status

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore, (type(self), self.message, self.details, self.code, self.retryable))


def _restore(cls: type[ShardwrightError], message: str, details: dict[str, str], code: int,
             retryable: bool) -> ShardwrightError:
    return cls(message, details, code=code, retryable=retryable)


class CancelledError(ShardwrightError, concurrent.futures.CancelledError):
    """The call or job was cancelled by the host."""

    code, status = 1, "CANCELLED"


class UnknownError(ShardwrightError):
    """A plugin or another rank reported a code that this version does not know."""


class InvalidArgumentError(ShardwrightError, ValueError):
    """A parameter, option or plan is wrong whatever the state of things."""

    code, status = 3, "INVALID_ARGUMENT"


class DeadlineExceededError(ShardwrightError, TimeoutError):
    """A limit that the host gave has passed."""

    code, status = 4, "DEADLINE_EXCEEDED"


class NotFoundError(ShardwrightError, FileNotFoundError, LookupError):
    """A path, tensor, object, plugin or symbol is missing."""

    code, status = 5, "NOT_FOUND"


class MissingNameError(NotFoundError, KeyError):
    """NOT_FOUND of a tensor or byte object, which its details name."""


class AlreadyExistsError(ShardwrightError, FileExistsError):
    """The target exists, or a name occurs twice."""

    code, status = 6, "ALREADY_EXISTS"


class PermissionDeniedError(ShardwrightError, PermissionError):
    """Refused by the system, or content that is unsafe to follow (detail `unsafe`)."""

    code, status = 7, "PERMISSION_DENIED"


class ResourceExhaustedError(ShardwrightError):
    """Memory, disk, descriptors or a configured limit are used up; detail `resource` says which."""

    code, status = 8, "RESOURCE_EXHAUSTED"


class OutOfMemoryError(ResourceExhaustedError, MemoryError):
    """RESOURCE_EXHAUSTED whose resource is memory."""


class FailedPreconditionError(ShardwrightError, RuntimeError):
    """A right call in the wrong state: after fork, after close, after the end of a job, a plan of something else."""

    code, status = 9, "FAILED_PRECONDITION"


class AbortedError(ShardwrightError, RuntimeError):
    """Somebody else got in between: another writer, a replaced checkpoint, a rank that died. Start again."""

    code, status = 10, "ABORTED"


class OutOfRangeError(ShardwrightError, IndexError):
    """A box outside its tensor, or a read beyond the end."""

    code, status = 11, "OUT_OF_RANGE"


class UnimplementedError(ShardwrightError, NotImplementedError):
    """Asked for by a newer caller or file, or an optional part is missing."""

    code, status = 12, "UNIMPLEMENTED"


class InternalError(ShardwrightError, RuntimeError):
    """A broken invariant of the library itself."""

    code, status = 13, "INTERNAL"


class UnavailableError(ShardwrightError, ConnectionError):
    """Storage or transport failed for now."""

    code, status = 14, "UNAVAILABLE"


class DataLossError(ShardwrightError):
    """Stored bytes are damaged, torn or gone."""

    code, status = 15, "DATA_LOSS"


class UnauthenticatedError(ShardwrightError, PermissionError):
    """Credentials are missing or have expired."""

    code, status = 16, "UNAUTHENTICATED"


class HostExceptionError(ShardwrightError):
    """A callback of the host failed on another rank, where its own exception came out."""

    code, status = HOST_EXCEPTION, "HOST_EXCEPTION"


_CLASSES: dict[int, type[ShardwrightError]] = {
    cls.code: cls
    for cls in (CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError, NotFoundError,
                AlreadyExistsError, PermissionDeniedError, ResourceExhaustedError, FailedPreconditionError,
                AbortedError, OutOfRangeError, UnimplementedError, InternalError, UnavailableError, DataLossError,
                UnauthenticatedError, HostExceptionError)
}

# Exceptions of callbacks on their way through the library, by the key that travels in the error's details.
_kept: OrderedDict[str, BaseException] = OrderedDict()
_kept_lock = threading.Lock()
_token = os.urandom(8).hex()
_number = 0


def _keep(error: BaseException) -> str:
    global _number
    with _kept_lock:
        _number += 1
        key = f"{_token}-{os.getpid()}-{_number}"
        _kept[key] = error
        while len(_kept) > _KEPT_EXCEPTIONS_MAX:
            _kept.popitem(last=False)
        return key


def _take_kept(details: Mapping[str, str]) -> BaseException | None:
    with _kept_lock:
        found = _kept.pop(details.get(_KEY, ""), None)
        for key in [key for key, error in _kept.items() if error is found]:
            del _kept[key]  # raised again by later operations of the same call
        return found


def from_native(code: int, message: str, details: Sequence[tuple[str, str]], retryable: int,
                cause: BaseException | None) -> BaseException:
    """The exception object of a status that the library returned."""
    facts = dict(details)
    if code == HOST_EXCEPTION:
        original = _take_kept(facts) or cause
        if original is not None:
            return original
    cls = _CLASSES.get(code, UnknownError)
    if cls is ResourceExhaustedError and facts.get("resource") == "memory":
        cls = OutOfMemoryError
    if cls is NotFoundError and not _NAMES.isdisjoint(facts):
        cls = MissingNameError
    facts.pop(_KEY, None)
    error = cls(message, facts, code=code, retryable=bool(retryable))
    if cause is not None and not message.endswith(str(cause)):  # which a traceback would print once more
        error.__cause__ = cause
    return error


def to_native(error: BaseException) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
    """Status, message and details of an exception that a callback raised.

    Errors of this module keep their status, and a FileNotFoundError of a storage means NOT_FOUND; everything else is put
    aside and comes out of the call that caused it.
    """
    if isinstance(error, ShardwrightError) and not isinstance(error, HostExceptionError):
        details = [(k.encode(), v.encode("utf-8", "backslashreplace")) for k, v in error.details.items()]
        return error.code, _encoded(error), details[:15]
    if isinstance(error, builtins.FileNotFoundError):
        return NotFoundError.code, _encoded(error), []
    text = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace")
    return HOST_EXCEPTION, text, [(_KEY.encode(), _keep(error).encode())]


def _encoded(error: BaseException) -> bytes:
    return str(error).encode("utf-8", "backslashreplace")
