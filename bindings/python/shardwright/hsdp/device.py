# SPDX-License-Identifier: Apache-2.0
"""Devices: where units have their memory."""
from __future__ import annotations

from typing import Any

from .._library import native
from ..context import Context, shared

_HOST_TYPES = (1, 3, 11)  # memory that the host reaches, by DLPack's numbers


def is_host_number(number: tuple[int, int]) -> bool:
    """Of memory that the host reaches."""
    return number[0] in _HOST_TYPES


class Device:
    """Memory of a kind, and lanes on which work runs beside the host. Made by `host_device` and `PluginDevice`."""

    def __init__(self, handle: Any) -> None:
        self._handle: Any = handle
        self.name = str(native.shw_device_name(handle))
        """Name of the device, such as "host"."""
        self.number: tuple[int, int] = (native.shw_device_type(handle), native.shw_device_id(handle))
        """DLPack's type of the device, and which one of that type: where views of it say that they lie."""

    @property
    def is_host(self) -> bool:
        """Its memory is memory of the host."""
        return is_host_number(self.number)

    def close(self) -> None:
        """Releases the device; contexts that use it keep it alive. Twice is fine."""
        native.shw_py_close(self._handle)

    def __reduce__(self) -> Any:
        raise TypeError("a device is not pickled; make one in each process")


class PluginDevice(Device):
    """A device of a plugin, made from text that the plugin understands: `PluginDevice("cuda", '{"device": 0}')`.
    UnimplementedError where the plugin has none; UnavailableError naming what is missing for it."""

    def __init__(self, plugin: str, config: str = "", *, context: Context | None = None) -> None:
        owner = context or shared()
        super().__init__(native.shw_context_open_device(owner._handle, plugin, config))


def host_device(inline_lanes: bool = False) -> Device:
    """The host as a device, which is what a context has without one. Lanes are threads; with `inline_lanes` what is put on them
    runs where it is put."""
    return Device(native.shw_device_create_host(inline_lanes))
