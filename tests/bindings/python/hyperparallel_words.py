# SPDX-License-Identifier: Apache-2.0
"""Vocabulary of the standard planners' tests: layouts and distributed tensors by duck type, worlds of planners, plans
made by hand."""
import math
import pickle

from shardwright.hyperparallel import (ChunkStorageMetadata, MetadataIndex, SavePlan, StandardLoadPlanner,
                                          StandardSavePlanner, TensorProperties, WriteItem, WriteItemType)


class LayoutObject:
    """A layout as HyperParallel's objects look from outside."""

    def __init__(self, mesh_shape, tensor_map, rank_list, partial=None, alias_name=None):
        self.mesh_shape, self.partial = mesh_shape, partial
        self.tensor_map = self._tensor_map = tensor_map
        self.rank_list = self._rank_list = rank_list
        if alias_name is not None:
            self.alias_name = alias_name

    def to_dict(self):
        return {"mesh_shape": self.mesh_shape, "tensor_map": self._tensor_map, "interleaved_parallel": False,
                "alias_name": getattr(self, "alias_name", ()), "rank_list": self._rank_list}


class Distributed:
    """A distributed tensor by duck type."""

    def __init__(self, local, shape, layout, reduced=None):
        self.local, self.shape, self.layout, self.reduced = local, shape, layout, reduced
        self.dtype = local.dtype

    def to_local(self):
        return self.local

    def reduce_partial(self):
        return self.reduced


class Described:
    """A plain descriptor: it can be planned, not written."""

    def __init__(self, shape, dtype="float32"):
        self.shape, self.dtype = tuple(shape), dtype


def rows(ranks, ndim=2):
    """A layout that splits the first dimension over these ranks."""
    return LayoutObject((len(ranks),), (0,) + (-1,) * (ndim - 1), list(ranks))


def local_plan(state, rank, **options):
    """A planner with this state, and its local plan."""
    planner = StandardSavePlanner(
        **{k: options.pop(k)
           for k in ("entry_kinds", "verify_replicas", "reduce_partial", "objects") if k in options})
    planner.configure_planner(state, rank=rank, **options)
    return planner, planner.build_local_plan()


def save_world(states, **options):
    """Planners, final plans and metadata of ranks with these states; plans and metadata travel as pickles."""
    options.setdefault("save_to_minimum_rank", False)
    planners, plans = zip(*(local_plan(state, rank, **options) for rank, state in enumerate(states)), strict=True)
    final, metadata = planners[0].build_global_plan(pickle.loads(pickle.dumps(list(plans))))
    final, metadata = pickle.loads(pickle.dumps((final, metadata)))
    for planner, plan in zip(planners, final, strict=True):
        planner.finalize_plan(plan)
    return planners, final, metadata


def stored(planners, plans):
    """What a storage would hold: {index: tensor or bytes}."""
    held = {}
    for planner, plan in zip(planners, plans, strict=True):
        for item in plan.items:
            value = planner.get_tensor(item.index) if item.type == WriteItemType.TENSOR else item.bytes_io_data
            assert value is not None, item
            held[item.index] = value
    return held


def load_into(state, metadata, held, rank=0, planner=None):
    """Fills a state from what `stored` gave."""
    planner = planner or StandardLoadPlanner()
    planner.configure_planner(state, metadata, rank=rank)
    plan = planner.finalize_plan(planner.build_global_plan([planner.build_local_plan()])[0])
    for item in plan.items:
        value = held[item.storage_index]
        if isinstance(value, bytes):
            planner.apply_bytes(item, value)
            continue
        begin = item.storage_offsets
        part = value[tuple(slice(b, b + n) for b, n in zip(begin, item.lengths, strict=True))] if begin else value
        planner.apply_tensor(item, part)
    return plan


def tensor_item(name, offsets, sizes, shape=None, dtype="float32", number=None):
    """A write item made by hand."""
    offsets, sizes = tuple(offsets), tuple(sizes)
    return WriteItem(MetadataIndex(name, offsets, number), WriteItemType.TENSOR,
                     {"chunk": ChunkStorageMetadata(offsets, sizes), "properties": TensorProperties(dtype),
                      "size": sizes if shape is None else tuple(shape)})


def object_item(name, value=None):
    """A write item of an object, made by hand."""
    return WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO, bytes_io_data=value)


def plan_of(rows_of_plan):
    """A plan of the vectors."""
    return SavePlan([tensor_item(row["name"], row["offsets"], row["sizes"], row["shape"], row["dtype"])
                     if "dtype" in row else object_item(row["name"]) for row in rows_of_plan])


def labels(plan):
    """Items of a plan as "name@offsets", or "name" for objects."""
    return [item.index.fqn if item.type == WriteItemType.BYTE_IO else
            f"{item.index.fqn}@{','.join(map(str, item.index.offset))}" for item in plan.items]


def element_count(sizes):
    """Elements of a box."""
    return math.prod(sizes)
