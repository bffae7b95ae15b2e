# SPDX-License-Identifier: Apache-2.0
"""shardwright: plans, saves, loads and reshards training checkpoints that are split over many processes.

    import shardwright
    shardwright.save({"weight": array, "step": 100}, "run/step-00000100")
    with shardwright.open("run/step-00000100") as c:
        rows = c["weight"][2:5, :]
    shardwright.load("run/step-00000100", into=state)

numpy is optional. torch is never imported here; its adapter is shardwright.torch.
"""
from ._library import __version__
from ._options import LoadOptions, OpenOptions, SaveOptions
from ._progress import Progress
from .calls import load, load_async, open, prepare, save, save_async
from .checkpoint import (Checkpoint, Chunk, StoredTensor, clean_pickles, collect_garbage, convert, latest, list_steps,
                         remove_entries, reshard, scan_pickles)
from .collective import (Collective, CustomCollective, HostCollective, NodeCollective, PluginCollective, SingleCollective,
                         thread_collectives)
from .context import Context
from .errors import (AbortedError, AlreadyExistsError, CancelledError, DataLossError, DeadlineExceededError,
                     FailedPreconditionError, HostExceptionError, InternalError, InvalidArgumentError, MissingNameError,
                     NotFoundError, OutOfMemoryError, OutOfRangeError, PermissionDeniedError, ResourceExhaustedError,
                     ShardwrightError, UnauthenticatedError, UnavailableError, UnimplementedError, UnknownError)
from .job_description import JobDescription
from .jobs import Job
from .layout import Layout, Shard
from .load_exchange import ExchangeRound, LoadExchange
from .mapping import Mapping
from .object_cells import ObjectCell, ObjectKey
from .planner import (LoadPlanner, Plan, PlanItem, SavePlanner, exchange_plans, plan_findings, plan_info,
                      validate_plan)
from .report import Cast, Report, ShapeChange
from .state import State, Stateful
from .storage import (Capability, CustomStorage, HostObject, HostStorage, MemoryStorage, PluginStorage, PosixStorage,
                      Storage)
from .tensor import Tensor, dtype_number, zeros

__all__ = [
    "AbortedError", "AlreadyExistsError", "CancelledError", "Capability", "Cast", "Checkpoint", "Chunk", "Collective",
    "Context",
    "CustomCollective", "CustomStorage", "DataLossError", "DeadlineExceededError", "ExchangeRound",
    "FailedPreconditionError", "HostCollective", "HostExceptionError", "HostObject", "HostStorage", "InternalError", "InvalidArgumentError", "Job",
    "JobDescription", "Layout", "LoadExchange", "LoadOptions", "LoadPlanner", "Mapping", "MemoryStorage", "MissingNameError", "NodeCollective", "NotFoundError",
    "ObjectCell", "ObjectKey", "OpenOptions", "OutOfMemoryError", "OutOfRangeError", "PermissionDeniedError", "Plan", "PlanItem",
    "PluginCollective", "PluginStorage", "PosixStorage", "Progress", "Report", "ResourceExhaustedError", "SaveOptions",
    "SavePlanner", "ShapeChange", "Shard", "ShardwrightError", "SingleCollective", "State", "Stateful", "Storage",
    "StoredTensor", "Tensor", "UnauthenticatedError", "UnavailableError", "UnimplementedError", "UnknownError",
    "__version__", "clean_pickles", "collect_garbage", "convert", "dtype_number", "exchange_plans", "latest", "list_steps", "load", "load_async", "open",
    "plan_findings", "plan_info", "prepare", "remove_entries", "reshard", "save", "save_async", "scan_pickles", "thread_collectives", "validate_plan", "zeros",
]
