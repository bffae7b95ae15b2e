# SPDX-License-Identifier: Apache-2.0
"""Whole jobs described without memory: what their saves and loads would cost is estimated on one machine.

    job = shardwright.JobDescription({"schema": 1, "meshes": {"m": {"axes": {"dp": 64}}}, "tensors": [...]})
    cost = job.estimate_save(rank_bytes_per_second=2_000_000_000)
    cost["bytes"]["max"], cost["time"]["seconds"]

docs/formats/mesh.md names every key of a description and of an estimate.
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
_WITH_CHUNKS = 2
_RATE_MAX = 2**62


def _estimate_options(flags: int, owner: str, preset: str, memory_budget: int = 0, rank_rate: int = 0,
                      total_rate: int = 0, ranks_per_node: int = 0, exchange: str = "off") -> dict[str, int]:
    """Fields of shw_estimate_options."""
    return {"flags": flags, "owner": _options.word("owner", owner), "preset": _options.word("preset", preset),
            "memory_budget": _options.number("memory_budget", memory_budget, _RATE_MAX),
            "rank_bytes_per_second": _options.number("rank_bytes_per_second", rank_rate, _RATE_MAX),
            "total_bytes_per_second": _options.number("total_bytes_per_second", total_rate, _RATE_MAX),
            "ranks_per_node": _options.number("ranks_per_node", ranks_per_node, 64),
            "exchange": _options.word("exchange", exchange, _options.WORDS["node_exchange"])}


class JobDescription:
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
        self._handle: Any = native.shw_job_description_create(data)

    @classmethod
    def _of(cls, handle: Any) -> JobDescription:
        made = cls.__new__(cls)
        made._handle = handle
        return made

    @classmethod
    def of_checkpoint(cls, checkpoint: Checkpoint) -> JobDescription:
        """What an open checkpoint stores: each chunk is held by the rank that wrote it."""
        return cls._of(native.shw_job_description_from_checkpoint(checkpoint._handle))

    def lay_out(self, target: JobDescription) -> JobDescription:
        """These tensors and objects as `target` lists them, else by the first of its rules that matches.

        Raises NotFoundError for what `target` lists and this job lacks, InvalidArgumentError for a tensor that it
        neither lists nor matches, or lists with another dtype or shape.
        """
        return JobDescription._of(native.shw_job_description_lay_out(self._handle, target._handle))

    @property
    def rank_count(self) -> int:
        """Number of ranks of the job."""
        return int(native.shw_job_description_rank_count(self._handle))

    def to_dict(self) -> dict[str, Any]:
        """The description as a mapping, repeats written out."""
        return dict(json.loads(native.shw_job_description_json(self._handle)[0]))

    def estimate_save(self, *, owner: str = "balanced", preset: str = "native", memory_budget: int = 0,
                      rank_bytes_per_second: int = 0, total_bytes_per_second: int = 0,
                      chunks: bool = False) -> dict[str, Any]:
        """Plans the save of all ranks and estimates what it costs; nothing is written.

        Args:
            owner, preset: who writes a replica and how it is planned, as in save.
            memory_budget: staging bytes of one rank, 0 = 256 MiB.
            rank_bytes_per_second, total_bytes_per_second: bandwidth of one rank and of all together, 0 = not known.
            chunks: groups of tensors list the chunks of their first tensor ("chunk_list"), up to 1 Mi in all.
        Raises what the save would raise, such as InvalidArgumentError for a hole between shards.
        """
        options = _estimate_options(_WITH_CHUNKS if chunks else 0, owner, preset, memory_budget, rank_bytes_per_second,
                                    total_bytes_per_second)
        return dict(json.loads(native.shw_estimate_save(self._handle, options)[0]))

    def save_plan(self, *, owner: str = "balanced", preset: str = "native") -> Plan:
        """The merged plan of all ranks."""
        parts = native.shw_estimate_save(self._handle, _estimate_options(_WITH_PLAN, owner, preset))
        return Plan.from_bytes(parts[1])

    def estimate_load(self, wanted: JobDescription | None = None, *, owner: str = "balanced", preset: str = "native",
                      memory_budget: int = 0, rank_bytes_per_second: int = 0, total_bytes_per_second: int = 0,
                      ranks_per_node: int = 0, exchange: str = "off", chunks: bool = False) -> dict[str, Any]:
        """Plans the load by the ranks of `wanted` (made by lay_out; None = this job) and estimates it.

        The checkpoint is the one that this job was made of, else what a save of it would store. Of `ranks_per_node` ranks on
        one machine each reads a part of what several want (0 = each reads alone, 64 at most). With `exchange` "always", which
        needs ranks_per_node, one rank reads what several machines want and sends it to the others ("received_bytes",
        "sent_bytes"). Other arguments as in estimate_save. Raises NotFoundError for what is not stored.
        """
        options = _estimate_options(_WITH_CHUNKS if chunks else 0, owner, preset, memory_budget, rank_bytes_per_second,
                                    total_bytes_per_second, ranks_per_node, exchange)
        handle = None if wanted is None else wanted._handle
        return dict(json.loads(native.shw_estimate_load(self._handle, handle, options)[0]))

    def load_plans(self, wanted: JobDescription | None = None, *, owner: str = "balanced", preset: str = "native") -> list[Plan]:
        """The load plan of each rank of `wanted`, rank 0 first; arguments and failures as in estimate_load.

        Entries of a plan are the tensors and objects that the rank holds, in the order of the description.
        ResourceExhaustedError for more than 4 GiB of plans.
        """
        handle = None if wanted is None else wanted._handle
        parts = native.shw_estimate_load(self._handle, handle, _estimate_options(_WITH_PLAN, owner, preset))
        return [Plan.from_bytes(part) for part in parts[1:]]

    def __repr__(self) -> str:
        return f"shardwright.JobDescription(rank_count={self.rank_count})"
