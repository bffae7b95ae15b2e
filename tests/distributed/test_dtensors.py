# SPDX-License-Identifier: Apache-2.0
"""DTensors as leaves of a state, in one process that is each rank of a group in turn: which are taken without a call for
each, and which boxes they hold."""
import gc
import itertools
import weakref

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from shardwright.state import State  # noqa: E402
from shardwright.torch._leaves import LeafConverter  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import DTensor, Replicate, Shard  # noqa: E402
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset  # noqa: E402

WORLD = 4
CUTS = list(itertools.product([Replicate(), Shard(0), Shard(1), Shard(2)], repeat=2))
SHAPE = (6, 5, 9)


@pytest.fixture
def as_rank():
    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")

    def become(rank):
        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group("fake", rank=rank, world_size=WORLD, store=fake.FakeStore())
        return init_device_mesh("cpu", (2, 2))
    yield become
    dist.destroy_process_group()


def held(mesh, placements):
    """(sizes, offsets) by torch."""
    return _compute_local_shape_and_global_offset(SHAPE, tuple(mesh.shape), mesh.get_coordinate(), placements)


def dtensor(mesh, placements, local=None):
    local = torch.zeros(held(mesh, placements)[0]) if local is None else local
    stride = torch.empty(SHAPE, device="meta").stride()
    return DTensor.from_local(local, mesh, placements, run_check=False, shape=torch.Size(SHAPE), stride=stride)


class Calls(LeafConverter):
    """Remembers which leaves a call was made for."""

    def __init__(self, group=None, writable=False):
        super().__init__(group, writable)
        self.names = []

    def convert(self, name, value):
        self.names.append(name)
        return super().convert(name, value)


def state_of(tree, writable=False):
    leaves = Calls(None, writable)
    made = State(tree, rank=dist.get_rank(), writable=writable, convert=leaves.convert, parts=leaves.parts)
    return made, leaves.names


@pytest.mark.parametrize("rank", range(WORLD))
@pytest.mark.parametrize("writable", [False, True], ids=["save", "load"])
def test_each_holds_the_boxes_that_torch_gives_it_and_none_needs_a_call(rank, writable, as_rank):
    mesh = as_rank(rank)
    tree = {str(number): dtensor(mesh, list(cuts)) for number, cuts in enumerate(CUTS * 2)}
    state, called = state_of({"model": tree, "optimizer": list(tree.values())}, writable)
    boxes = state.boxes()
    assert called == [] and len(boxes) == 2 * len(tree)
    for name, (shape, pieces) in boxes.items():
        sizes, offsets = held(mesh, CUTS[int(name.split(".")[1]) % len(CUTS)])
        assert shape == SHAPE and pieces == [(tuple(offsets), tuple(sizes))], name


def test_what_is_no_plain_tensor_in_host_memory_is_left_to_a_call(as_rank):
    mesh = as_rank(1)
    cuts = [Shard(0), Replicate()]
    kind = type("Kind", (torch.Tensor,), {})
    plain, odd = dtensor(mesh, cuts), dtensor(mesh, cuts)
    odd._local_tensor = odd._local_tensor.as_subclass(kind)
    without = dtensor(mesh, cuts)
    del without._spec
    with pytest.raises(AttributeError):
        state_of({"plain": plain, "without": without})
    state, called = state_of({"plain": plain, "odd": odd, 3: dtensor(mesh, cuts)})
    assert called == ["odd"] and sorted(state.boxes()) == ["3", "odd", "plain"]
    assert len({str(value) for value in state.boxes().values()}) == 1


def test_a_state_of_dtensors_ends_with_its_last_reference(as_rank):
    """As nothing in it refers to it, tensors do not wait for the garbage collector."""
    mesh = as_rank(0)
    gc.disable()
    try:
        tensor = dtensor(mesh, [Shard(0), Shard(1)])
        state, _ = state_of({"w": tensor})
        local = weakref.ref(tensor._local_tensor)
        ends = weakref.ref(state)
        del state
        assert ends() is None
        del tensor
        assert local() is None
    finally:
        gc.enable()


def test_equal_placements_share_a_layout_and_others_have_their_own(as_rank):
    """Also beyond what is remembered of one state, and for meshes that are equal and not the same."""
    mesh = as_rank(3)
    shards = {f"{number}": dtensor(mesh if number % 2 else init_device_mesh("cpu", (2, 2)), [type(cut)(*dims) for cut, dims in [
        (cut, (cut.dim,) if isinstance(cut, Shard) else ()) for cut in CUTS[number % len(CUTS)]]]) for number in range(100)}
    state, called = state_of(shards)
    assert called == [] and len(state._layouts) == len(CUTS)
    for name, (_, pieces) in state.boxes().items():
        sizes, offsets = held(mesh, CUTS[int(name) % len(CUTS)])
        assert pieces == [(tuple(offsets), tuple(sizes))], name
