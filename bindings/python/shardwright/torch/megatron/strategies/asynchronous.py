# SPDX-License-Identifier: Apache-2.0
"""Which engine saves in the background: the library's, under the names that megatron-core has for its two."""
from __future__ import annotations

from typing import Any

from ....errors import InvalidArgumentError
from ...dcp.filesystem import FileSystemReader, FileSystemWriter
from .async_calls import AsyncCallsQueue, AsyncRequest

ASYNC_STRATEGIES = ("nvrx", "mcore")


class UnknownAsyncStrategyError(InvalidArgumentError, TypeError):
    """There is no engine of that name."""


def get_async_strategy(async_strategy: str = "nvrx", module: Any = None) -> tuple[str, dict[str, Any]]:
    """The name, and the classes of the engine by the names of megatron-core. Both names are the engine of the library, which
    needs no other package.

    Args:
        module: one name of the table, of which alone the class is given.
    Raises:
        UnknownAsyncStrategyError: another name of an engine. It is a TypeError, too.
    """
    if async_strategy not in ASYNC_STRATEGIES:
        raise UnknownAsyncStrategyError(f"async_strategy {async_strategy!r} is none of {', '.join(ASYNC_STRATEGIES)}",
                                        {"parameter": "async_strategy"})
    table: dict[str, Any] = {"AsyncCallsQueue": AsyncCallsQueue, "AsyncRequest": AsyncRequest,
                             "CachedMetadataFileSystemReader": FileSystemReader, "FileSystemWriterAsync": FileSystemWriter}
    if module is not None and module not in table:
        raise UnknownAsyncStrategyError(f"{module!r} is none of {', '.join(table)}", {"parameter": "module"})
    return async_strategy, table if module is None else {module: table[module]}
