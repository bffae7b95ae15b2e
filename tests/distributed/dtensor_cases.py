# SPDX-License-Identifier: Apache-2.0
"""Cases of DTensors as leaves of a state: whatever their mesh, placements, shape and memory, what is stored is the tensor."""
import itertools

import shardwright
import shardwright.torch
import torch
import torch.distributed as dist
from cases import digest, ranks, whole
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard

SHAPES = [(10, 7), (4, 1), (3, 5), (1, 8), (2, 3, 5)]  # with 4 ranks: even, uneven, and nothing on some of them


def part_of(full, mesh, placements):
    """This rank's DTensor of a whole tensor, by the cuts that torch makes. Empty for a rank that is not in the mesh."""
    local, coordinate = full, mesh.get_coordinate()
    for placement, parts, index in zip(placements, mesh.shape, coordinate or (), strict=coordinate is not None):
        if not isinstance(placement, Replicate):
            local = placement._split_tensor(local, parts, with_padding=False, contiguous=True)[0][index]
    return DTensor.from_local(local.clone(), mesh, placements, run_check=False, shape=full.shape, stride=full.stride())


def fill(state):
    for tensor in state.values():
        tensor.to_local().fill_(-1)


def check_stored(path, wholes):
    with shardwright.open(path) as c:
        assert {name: c[name].digest("sha256") for name in c} == {name: digest(full) for name, full in wholes.items()}


def check_filled(path, state, missing=()):
    """Loads into the state what it was saved from; each element of each local tensor is the one that it was."""
    expected = {name: tensor.to_local().clone() for name, tensor in state.items()}
    fill(state)
    report = shardwright.torch.load(path, into=state)
    assert report.missing == list(missing)
    for name, tensor in state.items():
        assert torch.equal(tensor.to_local(), expected[name]), name


@ranks(4)
def dtensors_of_every_placement_on_meshes_of_one_and_two_axes(folder):
    """Each has placements of its own, equal to those of others; together they are more than are remembered."""
    line, square = init_device_mesh("cpu", (4,)), init_device_mesh("cpu", (2, 2))
    kinds = [Replicate, *(lambda dim=dim: Shard(dim) for dim in (0, 1))]
    grid = [(line, (make,)) for make in kinds] + [(square, pair) for pair in itertools.product(kinds, kinds)]
    grid += [(square, (lambda dim=dim, factor=factor: _StridedShard(dim, split_factor=factor), lambda dim=dim: Shard(dim)))
             for dim, factor in ((0, 2), (1, 2), (0, 3))]
    grid += [(line, (lambda factor=factor: _StridedShard(0, split_factor=factor),)) for factor in (2, 3, 5)]
    state, wholes = {}, {}
    for (number, (mesh, makes)), shape in itertools.product(enumerate(grid), SHAPES):
        name = f"{number}/{'x'.join(map(str, shape))}"
        wholes[name] = whole(shape, start=1000 * len(wholes))
        state[name] = part_of(wholes[name], mesh, [make() for make in makes])
    shardwright.torch.save(state, folder / "p")
    check_stored(folder / "p", wholes)
    check_filled(folder / "p", state)


@ranks(4)
def dtensors_on_parts_of_a_mesh_and_beside_plain_tensors(folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    half, full = DeviceMesh("cpu", [3, 1]), whole((9, 4))
    on_half = part_of(full, half, [Shard(0)])
    state = {"model": {"rows": part_of(full, mesh["model"], [Shard(0)]), "scale": torch.ones(3), "half": on_half,
                       "weights": [part_of(full, mesh["data"], [Shard(1)]), torch.zeros(2), nn.Parameter(part_of(full, mesh, [
                           Shard(0), Shard(1)]))]}, "scalar": part_of(torch.tensor(7.0), mesh, [Replicate(), Replicate()])}
    shardwright.torch.save(state, folder / "p")
    check_stored(folder / "p", {"model.rows": full, "model.scale": torch.ones(3), "model.half": full, "model.weights.0": full,
                                "model.weights.1": torch.zeros(2), "model.weights.2": full, "scalar": torch.tensor(7.0)})
    weights = shardwright.load(folder / "p")["model"]["weights"]
    assert type(weights) is list and [tuple(w.shape) for w in weights] == [(9, 4), (2,), (9, 4)], "their paths hold positions"
    locals_ = {"rows": state["model"]["rows"], "half": on_half, "column": state["model"]["weights"][0], "scalar": state["scalar"]}
    expected = {name: tensor.to_local().clone() for name, tensor in locals_.items()}
    fill(locals_)
    shardwright.torch.load(folder / "p", into=state)
    assert all(torch.equal(tensor.to_local(), expected[name]) for name, tensor in locals_.items())


@ranks(4)
def dtensors_whose_memory_is_not_row_major_or_still_arrives(folder):
    mesh, full = init_device_mesh("cpu", (4,)), whole((8, 6))
    rows = part_of(full, mesh, [Shard(0)])
    turned = DTensor.from_local(rows.to_local().t().contiguous().t(), mesh, [Shard(0)], run_check=False)
    columns = torch.full((8, 12), -1.0)
    columns[:, ::2] = full
    spread = DTensor.from_local(columns[2 * dist.get_rank():][:2, ::2], mesh, [Shard(0)], run_check=False)
    assert not turned.to_local().is_contiguous() and not spread.to_local().is_contiguous()
    arriving = rows.redistribute(placements=[Replicate()], async_op=True)
    assert type(arriving._local_tensor) is not torch.Tensor
    state = {"turned": turned, "spread": spread, "arriving": arriving, "trained": nn.Parameter(rows)}
    shardwright.torch.save(state, folder / "p")
    check_stored(folder / "p", dict.fromkeys(state, full))
    with torch.no_grad():
        check_filled(folder / "p", {"turned": turned, "spread": spread})
    assert (columns[:, 1::2] == -1).all(), "what lies between the elements stays"


@ranks(4)
def dtensors_are_described_as_they_are_at_each_save(folder):
    """Nothing of the first save is left in the second, though tensor and spec are the same objects."""
    mesh, full = init_device_mesh("cpu", (4,)), whole((8, 8))
    tensor, spec = part_of(full, mesh, [Shard(0)]), None
    for number, placement in enumerate([Shard(0), Shard(1), Replicate(), Shard(0)]):
        moved = part_of(full + number, mesh, [placement])
        spec = tensor._spec
        spec.placements = moved.placements
        tensor._local_tensor = moved.to_local()
        shardwright.torch.save({"w": tensor}, folder / f"p{number}")
        check_stored(folder / f"p{number}", {"w": full + number})
    tensor._local_tensor = torch.ones(2, 7)  # rows that lost a column
    try:
        shardwright.torch.save({"w": tensor}, folder / "q", deadline=60)
    except shardwright.InvalidArgumentError as error:
        assert error.details["tensor"] == "w", error.details
    else:
        raise AssertionError("a local tensor that is too small was saved")
    dist.barrier()


@ranks(4)
def dtensors_with_what_is_no_layout_are_refused_by_all_ranks(folder):
    from torch.distributed.tensor import Partial
    mesh = init_device_mesh("cpu", (4,))
    good = part_of(whole(), mesh, [Shard(0)])
    for bad, kind, word in [(DTensor.from_local(torch.ones(4), mesh, [Partial()], run_check=False),
                             shardwright.FailedPreconditionError, "Partial"),
                            (part_of(whole(), mesh, [Shard(0)]).to("meta"), shardwright.InvalidArgumentError, "meta")]:
        try:
            shardwright.torch.save({"good": good, "bad": bad}, folder / "p", deadline=60)
        except shardwright.ShardwrightError as error:
            assert type(error) is kind and word in str(error), repr(error)
        else:
            raise AssertionError(f"{word} was saved")
        dist.barrier()
    assert not (folder / "p" / "manifest.shw").exists()
