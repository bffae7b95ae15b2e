# SPDX-License-Identifier: Apache-2.0
"""Process groups as transport without Python: the collective and the communicator of the plugin "torch", libshardwright_torch.so.

It finds a group by its name and makes side groups of its own, as _side.py does for the stand-in in Python. No operation
needs the interpreter, so a save in the background goes on whatever other threads do with it.
"""
from __future__ import annotations

import datetime
import functools
import json
import os
import threading
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch._C._distributed_c10d as _c10d

from ..collective import Collective, PluginCollective
from ..context import shared
from ..errors import ShardwrightError
from ..hsdp import Communicator, PluginCommunicator
from ._side import DEFAULT_SECONDS
from ._waiting import interruptible

PLUGIN = "torch"


@functools.cache
def problem() -> str:
    """Why this process cannot use the plugin, or nothing. Loads it at the first call."""
    try:
        found = next((each for each in shared().plugins() if each["name"] == PLUGIN), None)
        compiled = _compiled_for(found) if found else ""
        if compiled and compiled.split(".")[:2] != torch.__version__.split(".")[:2]:
            return (f"libshardwright_torch.so was compiled for torch {compiled}, and this is torch {torch.__version__}: build "
                    "shardwright in this environment")
        shared().load_plugin(PLUGIN)
    except (ShardwrightError, OSError, ValueError) as e:
        return str(e)
    return ""


def _compiled_for(plugin: dict[str, Any]) -> str:
    """The version of torch that the description of a plugin names."""
    description = Path(plugin["file"]).with_name(f"{PLUGIN}.shw-plugin.json")
    found = json.loads(description.read_text(encoding="utf-8")) if description.is_file() else {}
    return str(found.get("torch", ""))


def problem_with(group: dist.ProcessGroup) -> str:
    """The same for one process group: it must be registered under its name and have a store."""
    name = group.group_name
    try:
        if not _c10d._is_process_group_registered(name) or _c10d._resolve_process_group(name) is not group:
            return f"the process group {name!r} is not registered under its name"
        if group.get_group_store() is None:
            return f"the process group {name!r} has no store"
    except RuntimeError as e:
        return f"the process group {name!r} cannot be looked at: {str(e).partition(chr(10))[0]}"
    return ""


def open_collective(group: dist.ProcessGroup, use: str, seconds: float | None) -> Collective:
    """This rank's end for one call. Collective where the side group has to be made; then a signal is seen meanwhile."""
    text = _config(group, use, seconds)
    made: Collective = interruptible(lambda: PluginCollective(PLUGIN, text, context=shared()))
    return made


def open_communicator(group: dist.ProcessGroup, use: str, seconds: float | None) -> Communicator:
    """This rank's end for tensors, over a side group of its own. Collective; a signal is seen meanwhile."""
    text = _config(group, use, seconds)
    made: Communicator = interruptible(lambda: PluginCommunicator(PLUGIN, text, context=shared()))
    return made


def _config(group: dist.ProcessGroup, use: str, seconds: float | None) -> str:
    config = {"group": group.group_name, "use": use, "seconds": DEFAULT_SECONDS if seconds is None else seconds}
    if not _has_gloo(group):
        config["gloo"] = _gloo_group()
    return json.dumps(config)


def _has_gloo(group: dist.ProcessGroup) -> bool:
    """Whether more groups can be made of what it has: not of what a debug mode wraps."""
    try:
        return type(group._get_backend(torch.device("cpu"))) is dist.ProcessGroupGloo
    except RuntimeError:
        return False


_gloo_groups: dict[str, dist.ProcessGroup] = {}  # the registry of torch only knows of them
_gloo_groups_lock = threading.Lock()


def _renew_lock() -> None:
    """In a child: another thread of the parent may have held it."""
    global _gloo_groups_lock
    _gloo_groups_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def _gloo_group() -> str:
    """Name of a registered group of this process alone with a Gloo backend, of which others are made."""
    name = f"shardwright/gloo/{os.getpid()}"
    with _gloo_groups_lock:
        if name not in _gloo_groups:
            _gloo_groups[name] = _registered_gloo_group(name)
    return name


def _registered_gloo_group(name: str) -> dist.ProcessGroup:
    store = _c10d.HashStore()
    group = dist.ProcessGroup(store, 0, 1)
    gloo: Any = dist.ProcessGroupGloo(store, 0, 1, datetime.timedelta(seconds=DEFAULT_SECONDS))
    group._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, gloo)
    group._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
    _c10d._register_process_group(dist.GroupName(name), group)
    return group
