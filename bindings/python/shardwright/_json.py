# SPDX-License-Identifier: Apache-2.0
"""JSON leaves of a state: None, bool, int, float, text, and lists, tuples and mappings of them.

What JSON has no form for is tagged: {"$float": "nan" | "inf" | "-inf"}, {"$tuple": [...]}, and {"$map": [[key, value],
...]} for mappings with keys that are not text or begin with "$".
"""
from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from .errors import DataLossError, InvalidArgumentError

CONTENT_TYPE = "application/json"
_DEPTH_MAX = 200


def is_scalar(value: Any) -> bool:
    """True for None, bool, int, float and text; numpy's float64, a float, counts, other subclasses do not."""
    kind = type(value)
    return value is None or kind in (bool, int, float, str) or (isinstance(value, float) and kind.__module__ == "numpy")


def is_container(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple, Mapping))


def _tagged(value: Any, where: str, depth: int) -> Any:
    if depth > _DEPTH_MAX:
        raise InvalidArgumentError(f"{where} is nested deeper than {_DEPTH_MAX} levels, or holds itself")
    if isinstance(value, float):
        number = float(value)
        return number if math.isfinite(number) else {"$float": "nan" if number != number else
                                                     "inf" if number > 0 else "-inf"}
    if is_scalar(value):
        return value
    if isinstance(value, tuple):
        return {"$tuple": [_tagged(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]}
    if isinstance(value, list):
        return [_tagged(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
    if isinstance(value, Mapping):
        if all(type(k) is str and not k.startswith("$") for k in value):
            return {k: _tagged(v, f"{where}.{k}", depth + 1) for k, v in value.items()}
        return {"$map": [[_key(k, where, depth), _tagged(v, f"{where}.{k}", depth + 1)] for k, v in value.items()]}
    raise not_a_leaf(where, value)


def _key(key: Any, where: str, depth: int) -> Any:
    if not (is_scalar(key) or isinstance(key, tuple)):
        raise InvalidArgumentError(f"{where} has a key of type {type(key).__qualname__}; keys must be text, integers or "
                                   "other plain values")
    return _tagged(key, where, depth + 1)


def not_a_leaf(where: str, value: Any) -> InvalidArgumentError:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return InvalidArgumentError(
        f"{where} is a {kind}, which is neither a tensor nor a JSON value nor bytes; convert it, or pass "
        'objects="pickle" to store it as a pickle', {"tensor": where, "found": kind})


def encode(value: Any, where: str) -> bytes:
    """Compact JSON text of a leaf; `where` names it in errors."""
    try:
        text = json.dumps(_tagged(value, where, 0), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8")
    except UnicodeEncodeError as e:
        raise InvalidArgumentError(f"{where} holds text that cannot be written as UTF-8: {e}") from e


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (tag, inner), = value.items()
        if tag == "$float":
            return float(inner)
        if tag == "$tuple":
            return tuple(_plain(v) for v in inner)
        if tag == "$map":
            return {_plain(k): _plain(v) for k, v in inner}
    return {k: _plain(v) for k, v in value.items()}


def decode(data: bytes, where: str) -> Any:
    """The value of JSON text that `encode` or another language wrote."""
    try:
        return _plain(json.loads(data))
    except (ValueError, TypeError, RecursionError) as e:
        raise DataLossError(f"object {where} does not hold the JSON that its content type promises: {e}") from e
