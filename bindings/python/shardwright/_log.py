# SPDX-License-Identifier: Apache-2.0
"""Log records of the library go to the logger "shardwright", which is silent until the program configures logging.

Threads of the library put records into a bounded native ring; they are handed on after calls, on the calling thread.
"""
from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ._library import native

_LEVELS = (5, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
logger = logging.getLogger("shardwright")
logger.addHandler(logging.NullHandler())


def native_level() -> int:
    """Threshold of the library that fits the logger's level; WARNING where nobody has chosen one."""
    chosen = logger.getEffectiveLevel()
    return next((number for number, level in enumerate(_LEVELS) if level >= chosen), len(_LEVELS))


def drain() -> None:
    """Hands records that have gathered to the logger."""
    for level, component, message, dropped in native.shw_py_log_drain():
        if dropped:
            logger.warning("%d log records of the library were lost", dropped)
        logger.log(_LEVELS[min(level, len(_LEVELS) - 1)], "%s: %s", component, message)


@contextmanager
def handed_on() -> Iterator[None]:
    """A call whose records are handed on when it ends, in whatever way."""
    try:
        yield
    finally:
        drain()
