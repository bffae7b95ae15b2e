# SPDX-License-Identifier: Apache-2.0
"""Worlds: whole jobs described without memory, whose saves and loads are planned and priced on one machine.

    world = shardwright.World({"schema": 1, "meshes": {"m": {"axes": {"dp": 64}}}, "tensors": [...]})
    price = world.price_save(rank_bytes_per_second=2_000_000_000)
    price["bytes"]["max"], price["time"]["seconds"]

docs/formats/mesh.md names every key of a description and of a price.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import _options
from ._library import native
from .checkpoint import Checkpoint
from .planner import Plan

_WITH_PLAN = 1
_RATE_MAX = 2**62


def _price_options(flags: int, owner: str, preset: str, memory_budget: int = 0, rank_rate: int = 0,
                   total_rate: int = 0) -> tuple[int, ...]:
    return (flags, _options.word("owner", owner), _options.word("preset", preset),
            _options.number("memory_budget", memory_budget, _RATE_MAX),
            _options.number("rank_bytes_per_second", rank_rate, _RATE_MAX),
            _options.number("total_bytes_per_second", total_rate, _RATE_MAX))


class World:
    """A described job: its ranks, and what each holds of each tensor and object. Immutable.

    Args:
        description: JSON text, UTF-8 bytes of it, or the same as a mapping.
    Raises InvalidArgumentError that says line and column of what is wrong (details "line" and "column"), and
    UnimplementedError for a newer schema.
    """

    def __init__(self, description: str | bytes | Mapping[str, Any]) -> None:
        if isinstance(description, Mapping):
            description = json.dumps(description)
        data = description.encode("utf-8") if isinstance(description, str) else description
        self._handle: Any = native.shw_world_create(data)

    @classmethod
    def _of(cls, handle: Any) -> World:
        world = cls.__new__(cls)
        world._handle = handle
        return world

    @classmethod
    def of_checkpoint(cls, checkpoint: Checkpoint) -> World:
        """What an open checkpoint stores: each chunk is held by the rank that wrote it."""
        return cls._of(native.shw_world_from_checkpoint(checkpoint._handle))

    def lay_out(self, target: World) -> World:
        """These tensors and objects as `target` lists them, else by the first of its rules that matches.

        Raises NotFoundError for what `target` lists and this world lacks, InvalidArgumentError for a tensor that it
        neither lists nor matches, or lists with another dtype or shape.
        """
        return World._of(native.shw_world_lay_out(self._handle, target._handle))

    @property
    def rank_count(self) -> int:
        """Number of ranks of the job."""
        return int(native.shw_world_rank_count(self._handle))

    def description(self) -> dict[str, Any]:
        """The world as a description, repeats written out."""
        return dict(json.loads(native.shw_world_json(self._handle)[0]))

    def price_save(self, *, owner: str = "balanced", preset: str = "standard", memory_budget: int = 0,
                   rank_bytes_per_second: int = 0, total_bytes_per_second: int = 0) -> dict[str, Any]:
        """Plans the save of all ranks and prices it; nothing is written.

        Args:
            owner, preset: who writes a replica and how it is planned, as in save.
            memory_budget: staging bytes of one rank, 0 = 256 MiB.
            rank_bytes_per_second, total_bytes_per_second: bandwidth of one rank and of all together, 0 = not known.
        Raises what the save would raise, such as InvalidArgumentError for a hole between shards.
        """
        options = _price_options(0, owner, preset, memory_budget, rank_bytes_per_second, total_bytes_per_second)
        return dict(json.loads(native.shw_world_price_save(self._handle, options)[0]))

    def save_plan(self, *, owner: str = "balanced", preset: str = "standard") -> Plan:
        """The merged plan of all ranks."""
        parts = native.shw_world_price_save(self._handle, _price_options(_WITH_PLAN, owner, preset))
        return Plan.from_bytes(parts[1])

    def price_load(self, wanted: World | None = None, *, owner: str = "balanced", preset: str = "standard",
                   memory_budget: int = 0, rank_bytes_per_second: int = 0, total_bytes_per_second: int = 0) -> dict[str, Any]:
        """Plans the load by the ranks of `wanted` (made by lay_out; None = this world) and prices it.

        The checkpoint is the one that this world was made of, else what a save of it would store. Arguments as in
        price_save. Raises NotFoundError for what is not stored.
        """
        options = _price_options(0, owner, preset, memory_budget, rank_bytes_per_second, total_bytes_per_second)
        handle = None if wanted is None else wanted._handle
        return dict(json.loads(native.shw_world_price_load(self._handle, handle, options)[0]))

    def load_plans(self, wanted: World | None = None, *, owner: str = "balanced", preset: str = "standard") -> list[Plan]:
        """The load plan of each rank of `wanted`, rank 0 first; arguments and failures as in price_load.

        Entries of a plan are the tensors and objects that the rank holds, in the order of the description.
        ResourceExhaustedError for more than 4 GiB of plans.
        """
        handle = None if wanted is None else wanted._handle
        parts = native.shw_world_price_load(self._handle, handle, _price_options(_WITH_PLAN, owner, preset))
        return [Plan.from_bytes(part) for part in parts[1:]]

    def __repr__(self) -> str:
        return f"shardwright.World(rank_count={self.rank_count})"
