# SPDX-License-Identifier: Apache-2.0
"""Calls in the order that torch had before 2.2: `save(state, writer)`."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])


def second_by_position(keyword: str) -> Callable[[_F], _F]:
    """Takes a second argument without a name for `keyword`, with a warning."""

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if len(arguments) == 2 and keyword not in named:
                warnings.warn(f"The argument order of {function.__name__} has been changed; pass {keyword} by its name.",
                              stacklevel=2)
                named[keyword] = arguments[1]
                arguments = arguments[:1]
            return function(*arguments, **named)

        return cast(_F, call)

    return decorate
