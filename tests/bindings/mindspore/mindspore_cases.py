# SPDX-License-Identifier: Apache-2.0
"""What shardwright.mindspore.hyperparallel does with MindSpore tensors on CPU; run by an interpreter that has
MindSpore, which prints one JSON line per case."""
import json
import pickle
import sys
import traceback

import mindspore as ms
import numpy as np
from shardwright.mindspore import hyperparallel as standard
from hyperparallel_words import Distributed, LayoutObject, rows

FULL = np.arange(42, dtype=np.float32).reshape(7, 6)


def save(states, **options):
    """Planners' final plans, metadata, and what a storage would hold."""
    planners, plans = [], []
    for rank, state in enumerate(states):
        planners.append(standard.StandardSavePlanner(**options))
        planners[-1].configure_planner(state, rank=rank, save_to_minimum_rank=False)
        plans.append(planners[-1].build_local_plan())
    final, metadata = planners[0].build_global_plan(pickle.loads(pickle.dumps(plans)))
    held = {}
    for planner, plan in zip(planners, final, strict=True):
        for item in planner.finalize_plan(plan).items:
            is_tensor = item.type == standard.WriteItemType.TENSOR
            held[item.index] = planner.get_tensor(item.index) if is_tensor else item.bytes_io_data
    return final, metadata, held


def planned(state, metadata, rank=0, **options):
    """A planner and its items."""
    planner = standard.StandardLoadPlanner(**options)
    planner.configure_planner(state, metadata, rank=rank)
    return planner, planner.build_local_plan().items


def load(state, metadata, held, rank=0, **options):
    """Fills a state, as HyperParallel's reader does: copy into what acquire_tensor gives, then apply it."""
    planner, items = planned(state, metadata, rank, **options)
    for item in items:
        value = held[item.storage_index]
        if isinstance(value, bytes):
            planner.apply_bytes(item, value)
            continue
        target = planner.acquire_tensor(item)
        target.copy_(standard.narrow_tensor_by_index(value, item.storage_offsets, item.lengths))
        planner.apply_tensor(item, target)


def refused(kind, words, function):
    """The call must raise this kind of error with these words in it."""
    try:
        function()
    except kind as e:
        assert all(word in str(e) for word in words), e
    else:
        raise AssertionError(f"no {kind.__name__}")


def shard(rank, ranks, values=FULL):
    """This rank's rows of the tensor, as a distributed tensor by duck type."""
    step = -(-len(values) // len(ranks))
    begin = step * ranks.index(rank)
    return Distributed(ms.Tensor(values[begin:begin + step].copy()), values.shape, rows(ranks))


def a_world_is_read_by_a_world_of_another_size():
    """Uneven rows of 3 ranks into 2 ranks, columns, parameters and whole tensors."""
    states = [{"w": shard(rank, [0, 1, 2]), "p": ms.Parameter(ms.Tensor(FULL), name="p"), "step": 3, "raw": b"\x00"}
              for rank in range(3)]
    _, metadata, held = save(states)
    assert metadata.state_dict_metadata["w"].properties.dtype == "Float32"
    for rank in range(2):
        target = {
            "w": shard(rank, [0, 1], FULL * 0), "p": ms.Parameter(ms.Tensor(FULL * 0), name="p"), "step": None,
            "raw": None
        }
        load(target, metadata, held, rank)
        assert (target["w"].to_local().asnumpy() == FULL[4 * rank:4 * rank + 4]).all()
        assert (target["p"].asnumpy() == FULL).all() and target["step"] == 3 and target["raw"] == b"\x00"
        columns = Distributed(ms.Tensor(np.zeros((7, 3), np.float32)), (7, 6), LayoutObject((2,), (-1, 0), [0, 1]))
        load({"w": columns}, metadata, held, rank)
        assert (columns.to_local().asnumpy() == FULL[:, 3 * rank:3 * rank + 3]).all()
    whole = {"w": ms.Tensor(FULL * 0)}
    load(whole, metadata, held)
    assert (whole["w"].asnumpy() == FULL).all()


def all_dtypes_come_back():
    """Also bfloat16, 0-d and empty tensors; their text is MindSpore's own."""
    dtypes = {"Float64": ms.float64, "Float16": ms.float16, "BFloat16": ms.bfloat16, "Int8": ms.int8, "Int64": ms.int64,
              "UInt8": ms.uint8, "Bool": ms.bool_, "Complex64": ms.complex64}
    values = {name: ms.Tensor(np.arange(4), dtype) for name, dtype in dtypes.items()}
    values |= {"scalar": ms.Tensor(2.5, ms.float32), "empty": ms.Tensor(np.zeros((0, 3), np.float32))}
    _, metadata, held = save([values, dict(values)])
    target = {name: ms.Tensor(np.zeros(value.shape), value.dtype) for name, value in values.items()}
    load(target, metadata, held)
    for name, value in values.items():
        assert target[name].asnumpy().tobytes() == value.asnumpy().tobytes(), name
        entry = metadata.state_dict_metadata[name]
        assert entry.properties.dtype == (name if name in dtypes else "Float32") and entry.size == value.shape


def what_differs_is_refused():
    """Content of replicas, dtype and shape of targets, summands, ranks outside the layout."""
    refused(ValueError, ("moment", "rank 0", "rank 1"),
            lambda: save([{"moment": ms.Tensor(FULL * rank)} for rank in range(2)]))
    partial = LayoutObject((2,), (-1, -1), [0, 1], partial=["sum"])
    refused(RuntimeError, ("w", "Partial"), lambda: save([{"w": Distributed(ms.Tensor(FULL), (7, 6), partial)}] * 2))
    _, metadata, held = save([{"w": ms.Tensor(FULL)}])
    integers = ms.Tensor(np.zeros((7, 6), np.int32))
    refused(ValueError, ("w", "Float32", "Int32"), lambda: planned({"w": integers}, metadata))
    refused(ValueError, ("w", "7, 6"), lambda: planned({"w": ms.Tensor(np.zeros((7, 1), np.float32))}, metadata))
    refused(ValueError, ("w", "rank 5"), lambda: planned({"w": shard(0, [0, 1])}, metadata, 5))
    refused(RuntimeError, ("v",), lambda: planned({"v": ms.Tensor(FULL)}, metadata))
    target = {"w": ms.Tensor(np.zeros((7, 6), np.int32))}
    load_cast, items = planned(target, metadata, dtype_policy="allow_cast")
    load_cast.apply_tensor(items[0], held[items[0].storage_index])
    assert (target["w"].asnumpy() == FULL.astype(np.int32)).all()


def entries_of_each_rank_come_back_to_it():
    """rank_local entries."""
    _, metadata, held = save([{"m": ms.Tensor(FULL * rank), "rng": [rank]} for rank in range(2)],
                             entry_kinds={"*": "rank_local"})
    for rank in range(2):
        target = {"m": ms.Tensor(FULL * 9), "rng": None}
        load(target, metadata, held, rank)
        assert (target["m"].asnumpy() == FULL * rank).all() and target["rng"] == [rank]


def views_and_tensors_that_are_not_contiguous():
    """A transposed tensor is compared and saved by its elements; views are no targets, as MindSpore loses what is
    copied there."""
    source = ms.Tensor(FULL.T.copy()).T
    _, metadata, held = save([{"w": source}, {"w": ms.Tensor(FULL)}])
    target = ms.Tensor(FULL * 0)
    load({"w": target}, metadata, held)
    assert (target.asnumpy() == FULL).all()
    for view in (ms.Tensor(np.zeros((6, 7), np.float32)).T, ms.Tensor(np.zeros((14, 6), np.float32))[7:]):
        refused(ValueError, ("w", "view"), lambda view=view: planned({"w": view}, metadata))


def functions_of_the_module():
    """Chunk lists, layouts of cells, and that names are those of the package without framework."""
    assert standard.create_chunk_list_for_tensor(shard(1, [0, 1]), 1) == [standard.ChunkStorageMetadata((4, 0), (3, 6))]
    assert standard.create_chunk_list_for_tensor(ms.Tensor(FULL)) == [standard.ChunkStorageMetadata((0, 0), (7, 6))]
    refused(ValueError, ("int",), lambda: standard.create_chunk_list_for_tensor(7))
    cell = ms.nn.Dense(2, 3)
    cell.weight.layout = rows([0, 1])
    found = standard.get_current_layout(cell)
    assert list(found["0"]) == ["weight"] and found["0"]["weight"]["type"] == "Float32"
    assert standard.get_global_layout(cell) == found
    from shardwright import hyperparallel
    assert set(hyperparallel.__all__) <= set(standard.__all__)


CASES = (a_world_is_read_by_a_world_of_another_size, all_dtypes_come_back, what_differs_is_refused,
         entries_of_each_rank_come_back_to_it, views_and_tensors_that_are_not_contiguous, functions_of_the_module)

if __name__ == "__main__":
    for case in CASES:
        try:
            case()
            outcome = "ok"
        except BaseException:
            outcome = traceback.format_exc(limit=-8)
        print(json.dumps({"case": case.__name__, "outcome": outcome}))
    sys.exit(0)
