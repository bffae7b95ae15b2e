# SPDX-License-Identifier: Apache-2.0
"""CoreGroups: several units of the library that one call of fully_shard made, with the calls of one. There are several where
parameters are computed with in several dtypes, or travel one by one."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import hsdp

_TRAVELLING = ("packed", "scattering", "replicating")


class CoreWorks:
    """Gathers under way, waited for as one."""

    def __init__(self, works: list[hsdp.Work]) -> None:
        self._works = works

    def wait(self) -> None:
        """Waits for all of them."""
        for each in self._works:
            each.wait()


class CoreGroups:
    """Units that are in the same state at all times but for gathers ahead. Parameters are numbered over all of them.

    Args:
        units: sealed, in the order in which they are gathered.
        members: for each the numbers of its parameters.
    """

    def __init__(self, units: list[hsdp.Unit], members: list[list[int]]) -> None:
        self.units, self._members = units, members
        self._place = {number: (unit, index) for unit, numbers in zip(units, members, strict=True)
                       for index, number in enumerate(numbers)}

    @property
    def state(self) -> str:
        """That of all, "gathering" where they differ."""
        states = {each.state for each in self.units}
        return states.pop() if len(states) == 1 else "gathering"

    @property
    def grad_state(self) -> str:
        """Of one whose gradients travel, else of the first."""
        states = [each.grad_state for each in self.units]
        return next((state for state in states if state in _TRAVELLING), states[0])

    def pre_forward(self, recompute: bool = False) -> None:
        """Of all, the first one around the others."""
        for each in self.units:
            each.pre_forward(recompute)

    def post_forward(self, recompute: bool = False) -> None:
        """Of all."""
        for each in reversed(self.units):
            each.post_forward(recompute)

    def pre_backward(self) -> None:
        """Of all."""
        for each in self.units:
            each.pre_backward()

    def post_backward(self) -> None:
        """Of all."""
        for each in self.units:
            each.post_backward()

    def unshard(self, async_op: bool = False) -> CoreWorks | None:
        """All gathers are under way before one is waited for."""
        works = CoreWorks([work for each in self.units if (work := each.unshard(async_op=True)) is not None])
        if async_op:
            return works
        works.wait()
        return None

    def reshard(self, phase: str = "backward") -> None:
        """Of all."""
        for each in self.units:
            each.reshard(phase)

    def add_grads(self, indices: Sequence[int], grads: Sequence[Any], take: bool = False) -> None:
        """To each those of its parameters."""
        given = dict(zip(indices, grads, strict=True))
        for unit, numbers in zip(self.units, self._members, strict=True):
            found = [(index, given[number]) for index, number in enumerate(numbers) if number in given]
            if found:
                unit.add_grads([index for index, _ in found], [grad for _, grad in found], take)

    def local(self, number: int) -> hsdp.UnitView:
        """What this rank holds of a parameter."""
        unit, index = self._place[number]
        return unit.local(index)

    def grad(self, number: int) -> hsdp.UnitView:
        """The gradient of the shard."""
        unit, index = self._place[number]
        return unit.grad(index)

    def views(self, view: str) -> list[tuple[int, tuple[int, ...], int, int]]:
        """Of all parameters in the order of their numbers."""
        found = {number: row for unit, numbers in zip(self.units, self._members, strict=True)
                 for number, row in zip(numbers, unit.views(view), strict=True)}
        return [found[number] for number in range(len(found))]

    def set_memory(self, addresses: Sequence[int], sizes: Sequence[int]) -> None:
        """Of all parameters."""
        for unit, numbers in zip(self.units, self._members, strict=True):
            unit.set_memory([addresses[each] for each in numbers], [sizes[each] for each in numbers])

    def set(self, **values: Any) -> None:
        """Of all."""
        for each in self.units:
            each.set(**values)

    def set_frozen(self, number: int, frozen: bool) -> None:
        """A parameter gets no gradients, or gets them again."""
        unit, index = self._place[number]
        unit.set_frozen(index, frozen)


Core = hsdp.Unit | CoreGroups


def units_of(core: Core) -> list[hsdp.Unit]:
    """The units of the library behind it."""
    return core.units if isinstance(core, CoreGroups) else [core]


def set_prefetch(core: Core, targets: Sequence[Core], phase: str) -> None:
    """Gathers the targets ahead when the last unit of a mesh runs, those on the same mesh; the others come before it."""
    last = {id(unit.owner): unit for unit in units_of(core)}
    for unit in last.values():
        unit.set_prefetch([each for target in targets for each in units_of(target) if each.owner is unit.owner], phase)
