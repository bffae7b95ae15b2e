# SPDX-License-Identifier: Apache-2.0
"""One save, whoever calls for it: directly or from a background thread or process."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.stateful import Stateful

from ...errors import FailedPreconditionError, InvalidArgumentError
from ...report import Report
from . import _choice, _direct, _replicas
from ._by_steps import Save
from ._direct import Members
from ._place import Place
from ._errors import failed, wrapped
from ._lazy_metadata import LazyMetadata
from ._steps import Steps
from .filesystem import FileSystemReader
from .fsspec_filesystem import FsspecReader, FsspecWriter
from .planner import DefaultSavePlanner

VERIFY_REPLICAS = ("warn", "error", "off")


class SaveCall(NamedTuple):
    """The arguments of a save, after its state: all but the state of what a background process is sent."""

    writer: Any
    planner: Any
    members: Members
    use_collectives: bool
    verify_replicas: str
    options: dict[str, Any]
    coordinator_rank: int = 0

    @property
    def place(self) -> Place | None:
        """Where the library saves by itself; None where this goes step by step."""
        return None if self.coordinator_rank else _choice.place_of_save(self.writer, self.planner, self.use_collectives)


def checked(call: SaveCall) -> SaveCall:
    """The call, with its options looked at before anything else happens."""
    if isinstance(call.planner, DefaultSavePlanner) and call.verify_replicas == "warn":
        call = call._replace(verify_replicas=call.planner.verify_replicas)
    if call.verify_replicas not in VERIFY_REPLICAS:
        raise InvalidArgumentError(f"verify_replicas {call.verify_replicas!r} is none of {', '.join(VERIFY_REPLICAS)}",
                                   {"parameter": "verify_replicas"})
    return call


def without_stateful(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """The state with the states of its Stateful values in their place."""
    return {key: value.state_dict() if is_stateful(value) else value for key, value in state_dict.items()}


def is_stateful(value: Any) -> bool:
    """Whether a value gives and takes its state. Most have none of the methods, which costs less than to ask the protocol."""
    return hasattr(value, "load_state_dict") and isinstance(value, Stateful)


def run(tree: dict[str, Any], call: SaveCall) -> Metadata:
    """Saves a state. CheckpointError on all ranks."""
    place = call.place
    if place is not None:
        report = _direct.save(tree, place, call.members, call.verify_replicas, options_of(call))
        if report is not None:
            return metadata_of(call, report)
    _choice.check_stepwise(call.options, "save", place is None)
    steps = _choice.steps_of(call.members, call.coordinator_rank)
    planner = call.planner
    if planner is None:
        planner = DefaultSavePlanner(verify_replicas="off")  # which compares no tensors
        if call.use_collectives:
            _compare_replicas(tree, steps, call.verify_replicas)
    return Save(tree, call.writer, planner, steps, call.use_collectives).run()


def _compare_replicas(tree: dict[str, Any], steps: Steps, verify_replicas: str) -> None:
    names = [] if verify_replicas == "off" or steps.size == 1 else _replicas.differing(tree, steps.collective, None)
    if not names:
        return
    if verify_replicas == "error":
        raise failed("plan", {steps.rank: wrapped(_replicas.refusal(names))})
    if steps.is_coordinator:
        _replicas.warn(names)


def options_of(call: SaveCall) -> dict[str, Any]:
    """What the library is told."""
    return _choice.save_options(call.writer, call.planner, call.options)


def metadata_of(call: SaveCall, report: Report) -> Metadata:
    """The metadata of a save of the library, which is read when somebody looks at it."""
    writer = call.writer
    kind = FsspecReader if isinstance(writer, FsspecWriter) else FileSystemReader
    return LazyMetadata(functools.partial(_stored_metadata, kind, writer.path, getattr(writer, "fsspec_options", {}),
                                          report.generation))


def _stored_metadata(kind: type[FileSystemReader], path: Any, options: dict[str, Any], generation: str) -> Metadata:
    found, stored = kind(path, **options).metadata()
    if generation and stored and stored != generation:
        raise FailedPreconditionError(f"the checkpoint at {path} has been replaced since it was saved; its metadata can be "
                                      "looked at only before", {"path": str(path)})
    return found


def warn_of_one_process(stacklevel: int) -> None:
    """As torch says it."""
    warnings.warn("torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to save in a single "
                  "process.", stacklevel=stacklevel + 1)
