# SPDX-License-Identifier: Apache-2.0
"""ModuleState: what fully_shard knows of a module that it was called with."""
from __future__ import annotations

import weakref

import torch
from torch import nn

from ._context import ContextOptions, TorchContext, context_of
from ._unit import TorchUnit

_states: weakref.WeakKeyDictionary[nn.Module, ModuleState] = weakref.WeakKeyDictionary()


class ModuleState:
    """Its unit, and the context once there is one."""

    def __init__(self, module: nn.Module, unit: TorchUnit, options: ContextOptions) -> None:
        self._module = weakref.ref(module)
        self.unit = unit
        self.context: TorchContext | None = None
        self.is_root = False
        self.runs = False  # forward has begun and not ended
        self._options = options

    @property
    def module(self) -> nn.Module:
        """The module, which lives as long as it runs."""
        module = self._module()
        assert module is not None
        return module

    def begin(self) -> TorchContext:
        """The context; the module that asks first becomes the root of it. Collective then."""
        if self.context is None:
            module = self.module
            below = [(name, state_of(each)) for name, each in module.named_modules()]
            states = [(name, state) for name, state in below if state is not None]
            units = {id(state.unit): (name or type(module).__name__, state.unit) for name, state in reversed(states)}
            self.is_root = True
            with torch.inference_mode(False), torch.no_grad():
                context = context_of(module, list(reversed(units.values())), self._options)
            # A list of modules is one unit, also where nothing around them is one.
            modules = [each for _, unit in units.values() for each in unit.modules]
            for state in filter(None, map(state_of, modules)):
                state.context = context
        assert self.context is not None
        return self.context


def state_of(module: nn.Module) -> ModuleState | None:
    """None where fully_shard was not called with the module."""
    return _states.get(module)


def remember(module: nn.Module, state: ModuleState) -> None:
    """From here on the module has that state."""
    _states[module] = state
