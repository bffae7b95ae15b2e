# SPDX-License-Identifier: Apache-2.0
"""TorchUnit: the parameters of one call of fully_shard, and what a phase does with them. Before the first forward it has no
context; then its shards move into memory of the library."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.utils.dlpack import from_dlpack

from ... import hsdp
from ...errors import InvalidArgumentError
from ._groups import Core, CoreGroups, CoreWorks, set_prefetch
from ._parameters import ManagedParameter, dtype_name, gathered_together, unit_dtypes
from ._placement import MeshPlace
from .policies import MixedPrecisionPolicy


class ForwardEnd:
    """Which unit of a model runs last before its root ends, as far as the last forward tells. Its backward comes next."""

    def __init__(self) -> None:
        self._ran: TorchUnit | None = None
        self._foretold: TorchUnit | None = None

    def ran(self, unit: TorchUnit) -> None:
        """A unit has run, with a backward to follow."""
        self._ran = unit

    def is_foretold(self, unit: TorchUnit) -> bool:
        """Whether it ran last the last time."""
        return unit is self._foretold

    def is_over(self) -> None:
        """The root ends."""
        self._foretold, self._ran = self._ran, None


class TorchUnit:
    """Parameters that are gathered and reduced together."""

    def __init__(self, modules: list[nn.Module], params: list[ManagedParameter], place: MeshPlace, policy: MixedPrecisionPolicy,
                 reshard_after_forward: bool | int | None, fused: bool, layout: str = "row", offloads: bool = False) -> None:
        self.modules, self.params, self.place, self.policy = modules, params, place, policy
        self.name = type(modules[0]).__name__
        self.reshard_after_forward = reshard_after_forward
        self._fused = fused  # one gather for all parameters of a dtype
        self._layout = layout
        self._offloads = offloads  # shards lie with the host
        self.settings: dict[str, Any] = {}  # to be set once there is a context
        self._prefetch: dict[str, list[TorchUnit]] = {}  # likewise
        self._model: list[TorchUnit] = []
        self.core: Core | None = None
        self.reduce_buffers = 1  # packed gradients that may live at once
        self.reduces_apart = False  # over communicators of its own
        self.all_reduce_hook: Callable[[torch.Tensor], None] | None = None
        self.keeps_memory = False  # of whole parameters while they are sharded
        self._shows_whole = False
        self._forward_end = ForwardEnd()
        self._group_policy: bool | int | None = None  # of the units of the library
        self._is_kept = False  # whole, though it reshards, for a backward that comes next
        self._to_run: set[nn.Module] = set()  # of a list, in a forward that has begun
        self._began = modules[0]  # which of the list ran first in it

    def attach(self, contexts: list[tuple[MeshPlace, hsdp.Hsdp]]) -> None:
        """Makes the unit of the library, or one for each group of its parameters. Collective."""
        members = self._members()
        made = [self._sealed(contexts, numbers, len(members)) for numbers in members]
        core = self.core = made[0] if len(made) == 1 else CoreGroups(made, members)
        for index, each in enumerate(self.params):
            self._frozen_as(index, each)
            each.make_whole()
            each.move_to(from_dlpack(core.local(index)))
        core.set(**self.settings)

    def _members(self) -> list[list[int]]:
        return gathered_together([(each.place, each.cast_dtype) for each in self.params], self.place, self._fused)

    def _sealed(self, contexts: list[tuple[MeshPlace, hsdp.Hsdp]], numbers: list[int], count: int) -> hsdp.Unit:
        """A unit of the library with some of the parameters, one of `count`."""
        params = [self.params[number] for number in numbers]
        cast = params[0].cast_dtype if params else None
        place, context = next(each for each in contexts if each[0].is_like(params[0].place if params else self.place))
        policy = self.reshard_after_forward
        if policy is None and (count > 1 or len(contexts) > 1):  # the library sees others inside of them that are not
            policy = not (self is self._model[0] and len(self._model) > 1)
        elif not isinstance(policy, bool) and policy == place.shard_size:  # on a smaller mesh than that of the module
            policy = True
        self._group_policy = policy
        unit = context.unit(self.name, **unit_dtypes(self.policy, cast), layout=self._layout, reshard_after_forward=policy,
                            offload=self._offloads, host_memory=True)
        unit.add_params([hsdp.Param(each.name, shape=tuple(each.gathered_shape), dtype=dtype_name(each.dtype),
                                    shard_dim=each.shard_dim or 0, replicate=each.shard_dim is None,
                                    frozen=not each.sharded.requires_grad, aliases=each.aliases) for each in params])
        unit.seal()
        for index, each in enumerate(params):
            box = unit.box(index)
            if each.ragged_begin is not None and (box.sizes != tuple(each.local.shape) or box.sizes[0] and
                                                  box.offsets[0] != each.ragged_begin):
                raise RuntimeError(f"parameters of {self.name} have changed their dtypes since fully_shard, and {each.name} would be cut "
                                   "otherwise: change them before, or take layout='row'")
        return unit

    def set(self, **values: Any) -> None:
        """Settings of hsdp.Unit, now or once there is a context."""
        self.settings |= values
        if self.core is not None:
            self.core.set(**values)

    def set_prefetch(self, units: list[TorchUnit], phase: str) -> None:
        """Units that are gathered while this one computes, now or once there is a context."""
        if self.core is not None:
            self._check_prefetch(units, self._model)
            set_prefetch(self.core, [each.core for each in units if each.core is not None], phase)
        self._prefetch[phase] = units

    def join(self, model: list[TorchUnit], paths: Mapping[nn.Module, str], forward_end: ForwardEnd) -> None:
        """The units of the model that this one is part of, and the paths of modules from the root, by which parameters are named.
        InvalidArgumentError where a unit of another model is to be gathered, RuntimeError for parameters without memory."""
        for param in self.params:
            param.name_from(paths)
            param.adopt()
            if param.local.is_meta:
                raise RuntimeError(f"parameter {param.name} of {self.name} is on the meta device: give it memory and values "
                                   "(module.to_empty, then initialise) before the first forward")
        for units in self._prefetch.values():
            self._check_prefetch(units, model)
        self._model = model
        self._forward_end = forward_end

    def _check_prefetch(self, units: list[TorchUnit], model: list[TorchUnit]) -> None:
        for each in units:
            if each not in model:
                raise InvalidArgumentError(f"{self.name} is to gather {each.name} ahead, which is not a part of the same model")

    def apply_prefetch(self) -> None:
        """What was set before; all units of the model are there."""
        for phase, units in self._prefetch.items():
            self.set_prefetch(units, phase)

    # ---- what changed since the last iteration ----

    def look_for_changes(self) -> bool:
        """Whether a shard was changed by the host since it was looked at; shards that the host moved come back."""
        assert self.core is not None
        changed = False
        for index, each in enumerate(self.params):
            if not self._shows_whole:
                each.adopt()
            if each.whole is not None and each.whole.requires_grad != each.sharded.requires_grad:
                each.whole.requires_grad_(each.sharded.requires_grad)
                self._frozen_as(index, each)
            if each.local.data_ptr() != each.address and each.local.numel() > 0:
                each.move_to(from_dlpack(self.core.local(index)))
                changed = True
            elif each.version() != each.seen_version:
                each.seen_version = each.version()
                changed = True
        return changed

    def _take_changes(self) -> None:
        """Before a gather: shards that the host has put in place since the last forward of the root."""
        assert self.core is not None
        if self.core.state == "sharded":
            self.look_for_changes()

    def _frozen_as(self, index: int, param: ManagedParameter) -> None:
        assert self.core is not None
        if param.dtype.is_floating_point:
            self.core.set_frozen(index, not param.sharded.requires_grad)

    # ---- phases ----

    def pre_forward(self, module: nn.Module, counts: bool, recompute: bool) -> bool:
        """The modules compute with whole parameters, of a list from the one that runs first to the one that runs last. Returns
        whether the backward of this module is the last of the unit. counts: backward follows."""
        assert self.core is not None
        if not recompute:
            if module not in self._to_run:
                self._to_run, self._began = set(self.modules), module
            elif self.core.state == "unsharded":
                return module is self._began
        self._take_changes()
        core = self._with_memory()
        core.pre_forward(recompute=not counts)
        self._show(whole=True)
        return module is self._began

    def post_forward(self, module: nn.Module, counts: bool, recompute: bool) -> None:
        """Reshards as the policy says, when the last one of a list has run."""
        if not recompute:
            self._to_run.discard(module)
            if self._to_run:
                return
        self._end_forward(counts, recompute)

    def end_forward(self, counts: bool) -> None:
        """The model has run, and modules of a list that have not do not run any more."""
        if self._to_run:
            self._to_run.clear()
            self._end_forward(counts, recompute=False)

    def forget_forward(self) -> None:
        """A forward that did not come to its end is over, and the backward for which the unit was kept did not come: what was
        written into its shards since is in no whole parameter."""
        self._to_run.clear()
        if self._is_kept:
            self.reshard()
        self._is_kept = False

    def _end_forward(self, counts: bool, recompute: bool) -> None:
        assert self.core is not None
        if counts:
            self._end_before_backward()
        elif recompute:
            self.core.post_forward(recompute=True)
        else:
            self.core.reshard("forward")
        self.follow_state()

    def _end_before_backward(self) -> None:
        """As the policy says. By default the unit whose backward comes next keeps what it would gather again at once."""
        assert self.core is not None
        is_root = self is self._model[0]
        self._is_kept = (self.reshard_after_forward is None and "reshard_after_forward" not in self.settings and not is_root and
                         self._forward_end.is_foretold(self))
        if self._is_kept:
            self.core.set(reshard_after_forward=False)
        self.core.post_forward()
        if self._is_kept:
            self.core.set(reshard_after_forward=self._group_policy)
        if not is_root:
            self._forward_end.ran(self)

    def pre_backward(self) -> None:
        """Whole parameters are there again."""
        self._is_kept = False
        self._with_memory().pre_backward()
        self._show(whole=self.core is not None and self.core.state == "unsharded")

    def post_backward(self) -> None:
        """Hands the gradients over and lets them travel."""
        self.hand_over()
        assert self.core is not None
        self.core.post_backward()
        self.follow_state()

    def hand_over(self) -> None:
        """The library has the gradients."""
        assert self.core is not None
        found = [(index, grad) for index, each in enumerate(self.params) if (grad := each.take_whole_gradient()) is not None]
        if found:
            self.core.add_grads([index for index, _ in found], [grad for _, grad in found], take=True)

    def take_gradients(self) -> None:
        """What the library has summed becomes the gradient of the sharded parameters, where it lies."""
        assert self.core is not None
        main = torch.float32 if self.policy.apply_grad_on_fp32_main_grad else None
        attribute = "main_grad" if self.policy.apply_grad_on_fp32_main_grad else "grad"
        found = [(self.params[index], from_dlpack(self.core.grad(index)) if 0 not in shape else
                  torch.zeros(shape, dtype=main or self.params[index].dtype, device=self.params[index].home))
                 for index, (address, shape, *_) in enumerate(self.core.views("grad")) if address != 0]
        if self.all_reduce_hook is not None:
            self._change(self.all_reduce_hook, [local for _, local in found])
        for param, local in found:
            param.take_gradient(local, attribute)

    def _change(self, hook: Callable[[torch.Tensor], None], grads: list[torch.Tensor]) -> None:
        for dtype in dict.fromkeys(each.dtype for each in grads):
            alike = [each for each in grads if each.dtype == dtype]
            flat = torch.cat([each.reshape(-1) for each in alike])
            hook(flat)
            for each, changed in zip(alike, torch.split(flat, [each.numel() for each in alike]), strict=True):
                each.copy_(changed.view_as(each))

    def unshard(self, async_op: bool) -> hsdp.Work | CoreWorks | None:
        """Gathers; with async_op `wait_unsharded` ends it."""
        self._take_changes()
        work = self._with_memory().unshard(async_op)
        if work is None:
            self._show(whole=True)
        return work

    def wait_unsharded(self, work: hsdp.Work | CoreWorks) -> None:
        """Waits for a gather; does nothing where the unit was resharded since."""
        assert self.core is not None
        if self.core.state == "gathering":
            self._with_memory()
        work.wait()
        if self.core.state == "unsharded":
            self._show(whole=True)

    def reshard(self) -> None:
        """Modules have their shards."""
        if self.core is None:
            return
        self.core.reshard()
        self.follow_state()

    def follow_state(self) -> None:
        """Modules see what the library has; memory that it does not use is freed."""
        assert self.core is not None
        if self.core.state == "unsharded":
            if self._is_kept:  # hosts that look at the module now are to see what they see of other layers
                self._show(whole=False)
            return
        self._show(whole=False)
        for each in self.params:
            if each.whole is not None and not self.keeps_memory:
                each.hold_memory(False)
        self.core.set_memory([0] * len(self.params), [0] * len(self.params))

    def _with_memory(self) -> Core:
        """The unit of the library, and memory for what it gathers."""
        assert self.core is not None
        if self.core.state == "unsharded":
            return self.core
        addresses, sizes = [], []
        for each in self.params:
            address, size = each.hold_memory(True)
            addresses.append(address)
            sizes.append(size)
        self.core.set_memory(addresses, sizes)
        return self.core

    def _show(self, whole: bool) -> None:
        if self._shows_whole == whole:
            return
        self._shows_whole = whole
        for each in self.params:
            each.show(whole)
