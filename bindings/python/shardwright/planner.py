# SPDX-License-Identifier: Apache-2.0
"""Planners: the host moves the plan buffers between ranks itself; no process group is needed.

Saving: every rank `local_plan`; one rank `global_plan(all of them)`; every rank `finish(its part)` and `execute`; the one
rank `commit(all results)`. Loading: `local_plan`, `execute`; or, where ranks read for each other, as load_exchange.py
says.
"""
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Unpack

from . import _options, _pickles, context
from ._library import native
from ._options import LoadOptions, SaveOptions
from .checkpoint import Checkpoint, path_argument
from .errors import FailedPreconditionError, InvalidArgumentError
from .load_exchange import LoadExchange
from .report import Report
from .state import State, Stateful
from .storage import handle_of as storage_handle

_KINDS = {1: "local_save", 2: "write_list", 3: "load", 4: "write_result", 5: "merged_save",
          6: "description", 7: "local_part", 8: "want_list", 9: "exchange"}


class PlanItem(NamedTuple):
    """One item of a write list or load plan; `entry` numbers the tensor (or object) in the rank's state."""

    is_object: bool
    entry: int
    piece: int
    chunk: int
    nbytes: int


class Plan:
    """A plan that passed all checks; immutable."""

    def __init__(self, handle: Any) -> None:
        self._handle: Any = handle

    @classmethod
    def from_bytes(cls, data: Any) -> Plan:
        """A plan from bytes of another rank or run. DataLossError, InvalidArgumentError, UnimplementedError."""
        return cls(native.shw_plan_create(data))

    def to_bytes(self) -> bytes:
        """The plan buffer."""
        data: bytes = native.shw_py_plan_bytes(self._handle)
        return data

    @property
    def kind(self) -> str:
        """"local_save", "write_list", "load", "write_result", "merged_save", "description",
        "local_part", "want_list" or "exchange"."""
        return _KINDS.get(native.shw_plan_kind(self._handle), "unknown")

    @property
    def rank(self) -> int:
        """Rank that the plan belongs to."""
        return int(native.shw_plan_rank(self._handle))

    def items(self) -> list[PlanItem]:
        """Items of a write list or load plan; none for other kinds."""
        return [PlanItem(bool(item.flags & 1), item.entry, item.piece, item.chunk, item.byte_size)
                for item in native.shw_py_plan_items(self._handle)]

    def to_dict(self, item_limit: int = 2**31) -> dict[str, Any]:
        """The plan as plain values with "schema": 1."""
        return dict(json.loads(native.shw_plan_json(self._handle, item_limit)[0]))

    def __len__(self) -> int:
        return int(native.shw_plan_item_count(self._handle))

    def __repr__(self) -> str:
        return f"shardwright.Plan({self.kind}, rank={self.rank}, items={len(self)})"

    def __reduce__(self) -> Any:
        return (Plan.from_bytes, (self.to_bytes(),))


def validate_plan(data: Any) -> None:
    """Checks a plan buffer of any kind; raises the first finding."""
    native.shw_plan_validate(data)


def plan_findings(data: Any) -> list[str]:
    """All findings about a plan buffer, as sentences; none when it is valid."""
    return [part.decode("utf-8", "replace") for part in native.shw_plan_findings(data)]


def plan_info(data: Any, item_limit: int = 100) -> str:
    """A plan buffer as JSON text, with at most `item_limit` items of each list."""
    return str(native.shw_plan_json(native.shw_plan_create(data), item_limit)[0].decode("utf-8"))


def exchange_plans(want_lists: Sequence[Plan]) -> list[Plan]:
    """Plans an exchange from the want lists of all ranks, in rank order: one plan for each rank. Equal lists give equal plans.
    InvalidArgumentError naming the rank when they are not those of all ranks or of one generation."""
    return [Plan(handle) for handle in native.shw_py_exchange_plans([plan._handle for plan in want_lists])]


def _plan(given: Plan | None, own: Plan | None, before: str) -> Plan:
    plan = given if given is not None else own
    if plan is None:
        raise FailedPreconditionError(f"there is no plan to execute; call {before} first", {"parameter": "plan"})
    return plan


class SavePlanner:
    """Plans the save of one rank.

    Args:
        state: nested mapping or State of this rank.
        path, storage: where the checkpoint shall lie; may be given to the calls instead.
        rank, world_size: this rank and the number of ranks.
        objects: "json" or "pickle".
        options: those of save.
    """

    def __init__(self, state: State | Stateful | Mapping[Any, Any], *, path: Any = None, storage: Any = None, rank: int = 0,
                 world_size: int = 1, objects: str = "json", **options: Unpack[SaveOptions]) -> None:
        self._state = state if isinstance(state, State) else State(state, rank=rank, objects=objects)
        self._state.check_can_be_saved()
        self._storage = storage_handle(storage)
        self._path = None if path is None else path_argument(path, storage)
        self._plan: Plan | None = None
        self._handle: Any = native.shw_save_planner_create(context.shared()._handle, self._state._handle, rank,
                                                           world_size, _options.save_options(options))

    def local_plan(self) -> bytes:
        """Describes this rank's state, for the rank that calls global_plan."""
        data: bytes = native.shw_save_planner_local_plan(self._handle)[0]
        return data

    def global_plan(self, plans: Sequence[bytes], *, path: Any = None, storage: Any = None) -> list[bytes]:
        """On the rank that will commit: merges the local plans of all ranks, in rank order; what each rank finishes."""
        place = self._place(path, storage)
        found: list[bytes] = native.shw_save_planner_global_plan(self._handle, *place, list(plans))
        return found

    def finish(self, plan: Any) -> Plan:
        """Takes this rank's part of the global plan. FailedPreconditionError when it belongs to another state."""
        self._plan = Plan(native.shw_save_planner_finish(self._handle, plan))
        return self._plan

    def execute(self, plan: Plan | None = None, *, path: Any = None, storage: Any = None) -> bytes:
        """Writes this rank's file; the result is for the rank that commits."""
        place = self._place(path, storage)
        result: bytes = native.shw_save_execute(self._handle, _plan(plan, self._plan, "finish")._handle, *place)[0]
        return result

    def commit(self, results: Sequence[bytes | None]) -> Report:
        """On the rank that made the global plan: checks the results of all ranks (None = that rank failed) and
        commits, or removes what was written."""
        return Report(native.shw_save_commit(self._handle, [result or b"" for result in results]))

    def _place(self, path: Any, storage: Any) -> tuple[Any, bytes]:
        if path is not None:
            return storage_handle(storage), path_argument(path, storage)
        if self._path is None:
            raise InvalidArgumentError("the planner was made without a path; give one here", {"parameter": "path"})
        return self._storage, self._path

    def close(self) -> None:
        """Releases the planner. Twice is fine."""
        native.shw_py_close(self._handle)

    def __enter__(self) -> SavePlanner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a SavePlanner points into memory of this process and is not pickled; move its plan buffers")


class LoadPlanner:
    """Plans a load of one rank.

    Args:
        checkpoint: an open Checkpoint.
        state: nested mapping or State (writable) whose tensors are filled.
        rank: selects rank-local entries.
        options: those of load.
    """

    def __init__(self, checkpoint: Checkpoint, state: State | Stateful | Mapping[Any, Any], *, rank: int = 0,
                 trust_pickle: bool = False, allow_types: Iterable[Any] | None = None,
                 **options: Unpack[LoadOptions]) -> None:
        self._state = state if isinstance(state, State) else State(state, writable=True, rank=rank)
        self._state.check_can_be_filled()
        self._trust_pickle, self._allow_types = trust_pickle, _pickles.chosen(allow_types)
        self._plan: Plan | None = None
        self._handle: Any = native.shw_load_planner_create(checkpoint._handle, self._state._handle, rank,
                                                           _options.load_options(options))

    def local_plan(self) -> Plan:
        """Matches what the state wants with what is stored. NotFoundError, InvalidArgumentError."""
        self._plan = Plan(native.shw_load_planner_local_plan(self._handle))
        return self._plan

    def execute(self, plan: Plan | None = None) -> Report:
        """Reads what the plan says (None = the planner's own) into the state."""
        chosen = _plan(plan, self._plan, "local_plan")
        report = Report(native.shw_load_execute(self._handle, chosen._handle))
        self._loaded(report)
        return report

    def want_list(self, world_size: int, plan: Plan | None = None) -> Plan:
        """What this rank of `world_size` wants by the plan (None = the planner's own), for the one that calls exchange_plans. A rank
        with less than 2 MiB to read wants nothing of others. FailedPreconditionError for a plan of another state or checkpoint."""
        chosen = _plan(plan, self._plan, "local_plan")
        size = _options.number("world_size", world_size, 2**31 - 1)
        return Plan(native.shw_load_planner_want_list(self._handle, chosen._handle, size))

    def exchange(self, exchange_plan: Plan, plan: Plan | None = None) -> LoadExchange:
        """Begins the load of what the plan (None = the planner's own) says, with blocks that come as the exchange plan says. The
        planner's deadline counts from here, and the memory of all rounds is taken here. FailedPreconditionError for an exchange
        plan of another rank, generation or plan, ResourceExhaustedError when the memory budget has no room."""
        chosen = _plan(plan, self._plan, "local_plan")
        made = native.shw_load_exchange_create(self._handle, chosen._handle, exchange_plan._handle)
        return LoadExchange(made, self, self._loaded)

    def _loaded(self, report: Report) -> None:
        self._state.finish_load(report.missing, self._trust_pickle, self._allow_types)

    def close(self) -> None:
        """Releases the planner. Twice is fine."""
        native.shw_py_close(self._handle)

    def __enter__(self) -> LoadPlanner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a LoadPlanner points into memory of this process and is not pickled; move its plan")
