# SPDX-License-Identifier: Apache-2.0
"""Loads the extension module of shardwright.torch, once, over the library that the neutral module has loaded."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _library, errors


def _load() -> Any:
    try:
        from ._native import _shw_torch as module
    except ImportError as e:
        raise ImportError(f"the extension module of shardwright.torch cannot be loaded over the library "
                          f"{_library.__version__} ({e}); install shardwright as a whole, from one release") from e
    module.set_error_hooks(errors.from_native, errors.to_native)
    return module


if TYPE_CHECKING:
    from ._native import _shw_torch as native
else:
    native = _load()
__all__ = ["native"]
