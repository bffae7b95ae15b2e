# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.hyperparallel on torch tensors and DTensors; ranks are simulated one after another over torch's
fake group."""
import contextlib
import importlib.util
import pickle

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip(reason="torch is not importable", allow_module_level=True)

import torch
import torch.distributed as dist
from shardwright import Layout
from shardwright.errors import FailedPreconditionError
from shardwright.torch import hyperparallel as standard
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.testing._internal.distributed.fake_pg import FakeStore


@contextlib.contextmanager
def as_rank(rank, world_size=4):
    """This process as one rank of a world whose collectives do nothing."""
    dist.init_process_group("fake", rank=rank, world_size=world_size, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def part(full, mesh_shape, placements):
    """This rank's part of a tensor, as torch itself cuts it."""
    mesh = DeviceMesh("cpu", torch.arange(dist.get_world_size()).reshape(mesh_shape))
    sizes, offsets = compute_local_shape_and_global_offset(full.shape, mesh, placements)
    local = full[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))].clone()
    return DTensor.from_local(local, mesh, placements, run_check=False, shape=full.shape, stride=full.stride())


def save(state_of_rank, world_size=4, **options):
    """Planners, final plans and metadata of a simulated world."""
    planners, plans = [], []
    for rank in range(world_size):
        with as_rank(rank, world_size):
            planner = standard.StandardSavePlanner(**options)
            planner.configure_planner(state_of_rank(rank), rank=rank, save_to_minimum_rank=False)
            plans.append(planner.build_local_plan())
            planners.append(planner)
    final, metadata = planners[0].build_global_plan(pickle.loads(pickle.dumps(plans)))
    held = {}
    for planner, plan in zip(planners, final, strict=True):
        for item in planner.finalize_plan(plan).items:
            is_tensor = item.type == standard.WriteItemType.TENSOR
            held[item.index] = planner.get_tensor(item.index) if is_tensor else item.bytes_io_data
    return final, metadata, held


def load(state, metadata, held, rank=0, **options):
    """Fills a state from what a world held."""
    planner = standard.StandardLoadPlanner(**options)
    planner.configure_planner(state, metadata, rank=rank)
    for item in planner.build_local_plan().items:
        value = held[item.storage_index]
        if isinstance(value, bytes):
            planner.apply_bytes(item, value)
        else:
            planner.apply_tensor(item, standard.narrow_tensor_by_index(value, item.storage_offsets, item.lengths))


FULL = torch.arange(7 * 6, dtype=torch.float32).reshape(7, 6)
LAYOUTS = [((4,), (Shard(0),)), ((4,), (Shard(1),)), ((2, 2), (Shard(0), Shard(1))), ((2, 2), (Shard(0), Shard(0))),
           ((2, 2), (Replicate(), Shard(1))), ((2, 2), (Shard(-1), Replicate())), ((4,), (Replicate(),))]


PAIRS = [(source, LAYOUTS[(number + step) % len(LAYOUTS)]) for number, source in enumerate(LAYOUTS) for step in (1, 3)]


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=str)
def test_any_placement_is_read_into_any_other(source, target):
    _, metadata, held = save(lambda rank: {"w": part(FULL, *source), "plain": FULL, "step": 3})
    for rank in range(4):
        with as_rank(rank):
            expected, state = part(FULL, *target), {"w": part(FULL, *target), "plain": torch.zeros(7, 6), "step": None}
            state["w"].to_local().fill_(-1)
            load(state, metadata, held, rank)
            assert torch.equal(state["w"].to_local(), expected.to_local())
            assert torch.equal(state["plain"], FULL) and state["step"] == 3


def test_chunks_of_distributed_tensors():
    with as_rank(3):
        tensor = part(FULL, (4,), (Shard(0),))
        assert standard.create_chunk_list_for_tensor(tensor) == [standard.ChunkStorageMetadata((6, 0), (1, 6))]
        assert standard.create_chunk_list_for_tensor(tensor, rank=9) == []
    assert standard.create_chunk_list_for_tensor(torch.zeros(2, 3)) == [standard.ChunkStorageMetadata((0, 0), (2, 3))]
    with pytest.raises(ValueError):
        standard.create_chunk_list_for_tensor([1.0])


def test_strided_shards_hold_several_boxes():
    """The rows of an uneven strided shard lie in several places of the tensor."""
    from torch.distributed.tensor.placement_types import _StridedShard
    full = torch.arange(14 * 2, dtype=torch.float32).reshape(14, 2)
    layout = Layout((2, 2), [("strided_shard", 0, 2), ("shard", 0)])

    def state(rank):
        mesh = DeviceMesh("cpu", torch.arange(4).reshape(2, 2))
        local = torch.cat([full[o[0]:o[0] + n[0]] for o, n in layout.boxes(full.shape, rank)])
        placements = (_StridedShard(0, split_factor=2), Shard(0))
        return {"w": DTensor.from_local(local, mesh, placements, run_check=False, shape=full.shape, stride=full.stride())}

    _, metadata, held = save(state)
    target = {"w": torch.zeros(14, 2)}
    load(target, metadata, held)
    assert torch.equal(target["w"], full)
    rows = full[[0, 1, 4, 5]]
    assert torch.equal(standard.window(rows[:, :], 4, (2, 2)), full[4:6])
    assert torch.equal(standard.window(rows, 3, (2, 1)), rows[1:3, 1:])


def test_a_rank_outside_the_mesh_is_refused():
    with as_rank(0):
        planner = standard.StandardSavePlanner()
        planner.configure_planner({"w": part(FULL, (4,), (Shard(0),))}, rank=7)
        with pytest.raises(ValueError, match="rank 7"):
            planner.build_local_plan()


def test_summands_are_refused_or_reduced():
    """K3: the original saves them as if they were values."""
    def state(rank):
        mesh = DeviceMesh("cpu", torch.arange(4))
        return {"w": DTensor.from_local(torch.ones(2, 2), mesh, (Partial(),), run_check=False)}

    with pytest.raises(RuntimeError, match="w.*Partial.*sum") as caught:
        save(state)
    assert isinstance(caught.value, FailedPreconditionError)
    final, metadata, _ = save(state, reduce_partial=True)
    assert [len(plan.items) for plan in final] == [1, 0, 0, 0] and metadata.planner_data == {"reduced": {"w": ["sum"]}}


def test_plain_tensors_that_differ_are_refused():
    """K1: optimizer state that was made as plain local tensors; the original brings one rank's shard back on all."""
    with pytest.raises(ValueError, match="exp_avg.*rank 0.*rank 1"):
        save(lambda rank: {"exp_avg": torch.full((3,), float(rank))})
    _, metadata, held = save(lambda rank: {"exp_avg": torch.full((3,), float(rank))},
                             entry_kinds={"exp*": "rank_local"})
    for rank in range(4):
        state = {"exp_avg": torch.zeros(3)}
        load(state, metadata, held, rank)
        assert state["exp_avg"].tolist() == [rank] * 3


@pytest.mark.parametrize("tensor", [
    torch.arange(12.0).reshape(3, 4).t(), torch.arange(24.0)[::2], torch.zeros(0, 3), torch.tensor(5),
    torch.arange(4, dtype=torch.bfloat16), torch.tensor([True, False]), torch.arange(4).to(torch.float8_e5m2),
    torch.view_as_complex(torch.arange(8.0).reshape(4, 2)).conj(), torch.arange(6)[2:5]],
    ids=["transposed", "strided", "empty", "0-d", "bfloat16", "bool", "float8", "conjugated", "view"])
def test_tensors_of_all_looks_are_compared_and_come_back(tensor):
    _, metadata, held = save(lambda rank: {"t": tensor.clone() if rank else tensor}, 2)
    target = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    load({"t": target}, metadata, held)
    assert target.tolist() == tensor.tolist() and target.dtype == tensor.dtype
    if tensor.numel():
        with pytest.raises(ValueError, match="t"):
            save(lambda rank: {"t": torch.zeros_like(tensor) if rank else tensor}, 2)


def test_tensors_without_memory_can_be_planned():
    final, metadata, _ = save(lambda rank: {"w": torch.zeros(3, 4, device="meta")}, 2)
    assert len(final[0].items) + len(final[1].items) == 1 and metadata.state_dict_metadata["w"].size == (3, 4)
    with pytest.raises(ValueError, match="meta"):
        load({"w": torch.zeros(3, 4, device="meta")}, metadata, {})


def test_trainable_parameters_are_filled():
    """K11: in the original the copy raises torch's error for leaves that require grad."""
    _, metadata, held = save(lambda rank: {"w": FULL, "b": FULL[0]}, 1)
    module = torch.nn.Linear(6, 7)
    state = {"w": module.weight, "b": torch.nn.Parameter(torch.zeros(6))}
    version = module.weight._version
    load(state, metadata, held)
    assert torch.equal(module.weight, FULL) and module.weight.requires_grad and module.weight.is_leaf
    assert module.weight._version > version and torch.equal(state["b"], FULL[0])


def test_nothing_is_copied_onto_itself():
    _, metadata, _ = save(lambda rank: {"w": FULL}, 1)
    target = torch.zeros(7, 6)
    planner = standard.StandardLoadPlanner()
    planner.configure_planner({"w": target}, metadata)
    item = planner.build_local_plan().items[0]
    view = planner.acquire_tensor(item)
    view.copy_(FULL)
    version = target._version
    planner.apply_tensor(item, view)
    planner.apply_tensor(item, None)
    assert torch.equal(target, FULL) and target._version == version
    planner.apply_tensor(item, FULL)
    assert target._version == version + 1
    with pytest.raises(ValueError):
        planner.apply_tensor(item, FULL[:1])
    with pytest.raises(ValueError):
        planner.apply_tensor(item, FULL.double())


def test_the_default_rank_is_that_of_the_group():
    planner = standard.StandardLoadPlanner()
    planner.configure_planner({}, standard.Metadata({}))
    assert planner.rank == 0
    with as_rank(2):
        planner.configure_planner({}, standard.Metadata({}))
        assert planner.rank == 2
        planner.configure_planner({}, standard.Metadata({}), rank=1)
        assert planner.rank == 1


def test_layouts_of_modules_have_names_as_keys():
    """The original puts every parameter under the key "null" and stumbles over torch's own `layout`."""
    assert standard.get_current_layout(torch.nn.Linear(2, 3), 5) == {"5": {}}
    with as_rank(1):
        assert standard.get_current_layout(torch.nn.Linear(2, 3)) == {"1": {}}
    assert standard.get_global_layout(torch.nn.Linear(2, 3)) == {"0": {}}


def test_names_are_those_of_the_package_without_framework():
    from shardwright import hyperparallel
    assert set(hyperparallel.__all__) <= set(standard.__all__)
    assert standard.MetadataIndex is hyperparallel.MetadataIndex
    assert issubclass(standard.StandardSavePlanner, hyperparallel.StandardSavePlanner)
