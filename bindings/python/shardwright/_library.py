# SPDX-License-Identifier: Apache-2.0
"""Loads the library and the extension module over it, once, and checks that they fit together.

The library is looked for in SHW_LIBRARY_PATH (a file or a directory), then beside the extension module. It is loaded
before the module, so that the module binds to it by its soname.
"""
from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any

from . import errors

SONAME = "libshardwright.so.0"


def _load_chosen_library() -> None:
    chosen = os.environ.get("SHW_LIBRARY_PATH")
    if not chosen:
        return
    path = os.path.join(chosen, SONAME) if os.path.isdir(chosen) else chosen
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as e:
        raise ImportError(f"SHW_LIBRARY_PATH names {path!r}, which cannot be loaded: {e}") from e


def _load() -> Any:
    _load_chosen_library()
    try:
        from ._native import _shw_native as module
    except ImportError as e:
        folder = os.path.join(os.path.dirname(__file__), "_native")
        raise ImportError(f"the extension module of shardwright or its library {SONAME} cannot be loaded from "
                          f"{folder!r} ({e}); set SHW_LIBRARY_PATH to the directory of the library") from e
    header_major, header_minor, major, minor, version = module.shw_py_versions()
    if header_major != major or (major == 0 and header_minor != minor) or header_minor > minor:
        raise ImportError(f"the module was built for interface {header_major}.{header_minor}, the library {version} "
                          f"offers {major}.{minor}; install both from one release or unset SHW_LIBRARY_PATH")
    module.shw_py_set_error_hooks(errors.from_native, errors.to_native)
    return module


if TYPE_CHECKING:
    from ._native import _shw_native as native
else:
    native = _load()
__version__: str = native.shw_version_string()
__all__ = ["__version__", "native"]
