# SPDX-License-Identifier: Apache-2.0
"""Saves and loads in which planner and storage are asked step by step, in the order and with the arguments that torch has
for them: the way of planners and storage plug-ins of the caller, and of saves without collectives.
"""
from __future__ import annotations

import inspect
import logging
import warnings
from typing import Any

from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter

from ...errors import NotFoundError, ShardwrightError
from . import _metadata_file
from ._errors import NoCheckpointError
from ._steps import Steps
from .planner import DefaultLoadPlanner
from .filesystem import FileSystemReader, FileSystemWriter

logger = logging.getLogger(__name__)


def _takes(method: Any, name: str) -> bool:
    return name in inspect.signature(method).parameters


class Save:
    """One save. `run` gives the metadata, on every rank."""

    def __init__(self, tree: dict[str, Any], writer: StorageWriter, planner: SavePlanner, steps: Steps,
                 use_collectives: bool) -> None:
        self._tree, self._writer, self._planner, self._steps = tree, writer, planner, steps
        self._use_collectives = use_collectives
        self._metadata: Metadata | None = None

    def run(self) -> Metadata:
        """Plans, writes and publishes. CheckpointError on all ranks."""
        if self._use_collectives:
            plan = self._steps.reduce_scatter("plan", self._local_plan, self._global_plan)
            found: Metadata = self._steps.all_reduce("write", lambda: self._write(plan), self._finish)
            return found
        return self._run_alone()

    def _run_alone(self) -> Metadata:
        """Each rank for itself, and all of them to the end. What was there before goes when all are there."""
        writer, steps = self._writer, self._steps

        def all_steps() -> Metadata:
            if isinstance(writer, FileSystemWriter):
                writer.is_followed = True
            plan = self._global_plan([self._local_plan()])[0]
            return self._finish([self._write(plan)])

        found: Metadata = steps.together("write", all_steps)
        if isinstance(writer, FileSystemWriter):
            steps.together("write", lambda: writer.leave_to_ranks(steps.size) if steps.is_coordinator else None)
        return found

    def _local_plan(self) -> SavePlan:
        storage_meta, first = self._writer.storage_meta(), self._steps.is_coordinator
        if _takes(self._planner.set_up_planner, "storage_meta"):
            self._planner.set_up_planner(state_dict=self._tree, storage_meta=storage_meta, is_coordinator=first)
        else:
            warnings.warn("SavePlanner.set_up_planner takes storage_meta since torch 2.3; add it to your planner", stacklevel=2)
            self._planner.set_up_planner(self._tree, first)  # type: ignore[arg-type]
        if _takes(self._writer.set_up_storage_writer, "kwargs"):
            self._writer.set_up_storage_writer(first, rank=self._steps.rank, use_collectives=self._use_collectives)
        else:
            self._writer.set_up_storage_writer(first)
        return self._writer.prepare_local_plan(self._planner.create_local_plan())

    def _global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        plans, metadata = self._planner.create_global_plan(plans)
        self._metadata = _metadata_file.plain(metadata)
        return self._writer.prepare_global_plan(plans)

    def _write(self, plan: SavePlan) -> Any:
        writes = self._writer.write_data(self._planner.finish_plan(plan), self._planner)
        writes.wait()
        return writes.value()

    def _finish(self, results: list[Any]) -> Metadata:
        assert self._metadata is not None, "the coordinator has planned"
        self._writer.finish(metadata=self._metadata, results=results)
        return self._metadata


class Load:
    """One load."""

    def __init__(self, tree: dict[str, Any], reader: StorageReader, planner: LoadPlanner, steps: Steps) -> None:
        self._tree, self._reader, self._planner, self._steps = tree, reader, planner, steps
        self._use_collectives = True

    def run(self) -> None:
        """Plans and reads. CheckpointError on all ranks. Plans stay where they are made unless planner or reader have a
        global step of their own."""
        if self._has_global_step():
            plan = self._steps.reduce_scatter("plan", self._local_plan, self._global_plan)
        else:
            plan = self._steps.together("plan", lambda: self._global_plan([self._local_plan()])[0])
        self._steps.together("read", lambda: self._read(plan))

    def _has_global_step(self) -> bool:
        ours = (isinstance(self._planner, DefaultLoadPlanner) and isinstance(self._reader, FileSystemReader)
                and _is(self._planner.create_global_plan, DefaultLoadPlanner.create_global_plan)
                and _is(self._reader.prepare_global_plan, FileSystemReader.prepare_global_plan))
        return self._steps.size > 1 and not ours

    def _local_plan(self) -> LoadPlan:
        metadata, first = self._read_metadata(), self._steps.is_coordinator
        self._planner.set_up_planner(self._tree, metadata, first)
        if _takes(self._reader.set_up_storage_reader, "kwargs"):
            self._reader.set_up_storage_reader(metadata, first, rank=self._steps.rank, use_collectives=self._use_collectives)
        else:
            self._reader.set_up_storage_reader(metadata, first)
        return self._reader.prepare_local_plan(self._planner.create_local_plan())

    def _read_metadata(self) -> Metadata:
        """The index of all ranks; else that which this rank left without collectives."""
        first: Exception | None = None
        try:
            found = self._reader.read_metadata()
            if found is not None:
                return found
            causes = ["global metadata is None"]
        except Exception as e:  # of whatever kind a reader has
            causes, first = [f"global metadata read failed: {e}"], e
            if not _takes(self._reader.read_metadata, "kwargs"):
                raise NoCheckpointError("; ".join(["metadata is None", *causes])) from first
        try:
            found = self._reader.read_metadata(rank=self._steps.rank)
            self._use_collectives = False
            return found
        except Exception as e:
            causes.append(f"rank local metadata read failed: {e}")
            if isinstance(first, ShardwrightError) and not isinstance(first, NotFoundError):
                raise first from e  # there is an index, and it is the problem
            raise NoCheckpointError("; ".join(["metadata is None", *causes])) from e

    def _global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return self._reader.prepare_global_plan(self._planner.create_global_plan(plans))

    def _read(self, plan: LoadPlan) -> None:
        self._reader.read_data(self._planner.finish_plan(plan), self._planner).wait()


def _is(method: Any, own: Any) -> bool:
    return getattr(method, "__func__", None) is own
