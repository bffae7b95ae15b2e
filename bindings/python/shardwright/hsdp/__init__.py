# SPDX-License-Identifier: Apache-2.0
"""Hybrid sharded data parallel training for hosts of any framework: parameters are sharded over one axis of a mesh, gathered
before they are used, and their gradients summed in rank order. docs/hsdp.md tells how it works.

    mesh = Mesh((4,), rank=rank)
    mesh.set_communicator(0, over(collective))
    hsdp = Hsdp(mesh)
    unit = hsdp.unit("layer")
    unit.add_params([Param("weight", weight), Param("bias", bias)])
    unit.seal()
"""
from .communicator import Communicator, PluginCommunicator, delayed, fake_communicator, over, thread_communicators
from .context import Hsdp
from .device import Device, PluginDevice, host_device
from ._estimate import EstimatedUnit, estimate
from .memory import Memory
from .mesh import Mesh
from .settings import ContextSettings, UnitSettings
from .unit import Box, Param, Unit, UnitView
from .work import Work

__all__ = ["Box", "Communicator", "ContextSettings", "Device", "EstimatedUnit", "Hsdp", "Memory", "Mesh", "Param",
           "PluginCommunicator", "PluginDevice", "Unit", "UnitSettings", "UnitView", "Work", "delayed", "estimate",
           "fake_communicator", "host_device", "over", "thread_communicators"]
