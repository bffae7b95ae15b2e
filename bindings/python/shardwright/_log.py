# SPDX-License-Identifier: Apache-2.0
"""Log records of the library go to the logger "shardwright", which is silent until the program configures logging.

Threads of the library put records into a bounded native ring; they are handed on while calls wait and after them, on the
calling thread, and when a job ends. The ring takes records of the levels for which the logger was enabled when the last call
began, so a level that is changed, or logging that is configured late, holds from the next call on.
"""
from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ._library import native

EVERY_LEVEL = 0  # threshold of contexts: the ring leaves out what the logger does not want
_LEVELS = (5, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
logger = logging.getLogger("shardwright")
logger.addHandler(logging.NullHandler())


def listen() -> None:
    """Lets the library's records through that the logger wants now."""
    native.shw_py_log_set_level(next((number for number, level in enumerate(_LEVELS) if logger.isEnabledFor(level)),
                                     len(_LEVELS)))


def drain() -> None:
    """Hands records that have gathered to the logger."""
    for level, component, message, dropped in native.shw_py_log_drain():
        if dropped:
            logger.warning("%d log records of the library were lost", dropped)
        logger.log(_LEVELS[min(level, len(_LEVELS) - 1)], "%s: %s", component, message)


@contextmanager
def handed_on() -> Iterator[None]:
    """A call whose records are handed on when it ends, in whatever way."""
    listen()
    try:
        yield
    finally:
        drain()
