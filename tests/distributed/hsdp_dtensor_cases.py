# SPDX-License-Identifier: Apache-2.0
"""Cases of fully_shard with parameters that are DTensors already: cut by tensor parallelism, or over all of a larger mesh."""
import shardwright.torch
import torch
import torch.distributed as dist
from cases import ranks
from hsdp_cases import STEPS, add, batch, loss_of, raises, sgd
from shardwright.torch import fully_shard
from torch import nn
from torch.distributed import fsdp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import DataParallelMeshDims
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)
from torch.distributed.tensor.placement_types import _StridedShard


# ---- tensor parallelism ----

class Parallel(nn.Module):
    """Two layers that tensor parallelism cuts, along different dimensions, and one that it does not."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.wide, self.narrow, self.last = nn.Linear(13, 16), nn.Linear(16, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.narrow(torch.tanh(self.wide(x))))


def _parallel(mesh, shard, **options):
    model = Parallel().double()
    parallelize_module(model, mesh["model"], {"wide": ColwiseParallel(), "narrow": RowwiseParallel()})
    for layer in (model.wide, model.narrow):
        shard(layer, mesh=mesh["data"], **options)
    return shard(model, mesh=mesh["data"], **options)


def _trained_parallel(model, data_rank):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, foreach=False)
    for step in range(STEPS):
        loss_of(model, batch(step, data_rank).double()).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


@ranks(4)
def hsdp_tensor_parallel_parameters_t25(folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    ours = _parallel(mesh, fully_shard)
    assert ours.wide.weight.placements == (_StridedShard(0, split_factor=2), Shard(0)), "both cut the rows"
    assert ours.narrow.weight.placements == (Shard(0), Shard(1))
    assert ours.narrow.bias.placements == (Shard(0), Replicate()) and ours.last.weight.placements == (Shard(0),)
    rows = 4 * (2 * mesh.get_local_rank("model") + mesh.get_local_rank("data"))
    assert torch.equal(ours.wide.weight.to_local(), Parallel().double().wide.weight[rows:rows + 4])
    theirs = _parallel(mesh, fsdp.fully_shard)
    for (name, found), expected in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert found.placements == expected.placements and found.device_mesh == expected.device_mesh, name
    for model in (ours, theirs):
        _trained_parallel(model, mesh.get_local_rank("data"))
    alone = Parallel().double()
    optimizer = sgd(alone)
    for step in range(STEPS):
        made = [torch.autograd.grad(loss_of(alone, batch(step, rank).double()), list(alone.parameters())) for rank in range(2)]
        for param, grad in zip(alone.parameters(), add(*made), strict=True):
            param.grad = grad * 0.5
        optimizer.step()
    for name, value in alone.state_dict().items():
        found = ours.state_dict()[name]
        assert torch.equal(found.to_local(), theirs.state_dict()[name].to_local()), f"{name} has not the bits of FSDP2"
        assert torch.allclose(found.full_tensor(), value, rtol=1e-10, atol=1e-12), name


@ranks(4)
def hsdp_tensor_parallel_parameters_are_loaded_and_saved_t25(folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    model, other = _parallel(mesh, fully_shard), Parallel().double()
    for param in other.parameters():
        nn.init.uniform_(param)
    dist.broadcast_object_list(values := [other.state_dict()])
    model.load_state_dict(values[0])  # whole tensors
    for name, value in values[0].items():
        assert torch.equal(model.state_dict()[name].full_tensor(), value), name
    shardwright.torch.save(model.state_dict(), folder / "saved")
    again = _parallel(mesh, fully_shard, reshard_after_forward=False)
    state = again.state_dict()
    shardwright.torch.load(folder / "saved", state)
    again.load_state_dict(state)
    for name, value in values[0].items():
        assert torch.equal(again.state_dict()[name].full_tensor(), value), name
    alone = Parallel().double()
    alone.load_state_dict(values[0])
    assert torch.allclose(again(batch(0, 0).double()), alone(batch(0, 0).double()), rtol=1e-10, atol=1e-12)


class Normed(nn.Module):
    """Its first layer sees a part of the rows of each batch, so that its gradients are parts of sums."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norm, self.wide = nn.LayerNorm(13), nn.Linear(13, 16)

    def forward(self, x):
        return self.wide(self.norm(x))


@ranks(4)
def hsdp_tensor_parallel_gradients_are_summed_t25(folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    made = {}
    for name, shard in (("ours", fully_shard), ("theirs", fsdp.fully_shard)):
        model = Normed().double()
        rows = PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Shard(0),), use_local_output=True)
        parallelize_module(model, mesh["model"], rows)
        parallelize_module(model, mesh["model"], {"norm": SequenceParallel(sequence_dim=0),
                                                  "wide": ColwiseParallel(input_layouts=Shard(0), output_layouts=Replicate())})
        shard(model.norm, mesh=mesh["data"])
        shard(model, mesh=mesh["data"])
        loss_of(model, batch(0, mesh.get_local_rank("data")).double()).backward()
        made[name] = model
    alone = Normed().double()
    grads = [torch.autograd.grad(loss_of(alone, batch(0, rank).double()), list(alone.parameters())) for rank in range(2)]
    for name, *found, grad in zip(("norm.weight", "norm.bias", "wide.weight", "wide.bias"), made["ours"].parameters(),
                                  made["theirs"].parameters(), add(*grads), strict=True):
        assert torch.equal(found[0].grad.to_local(), found[1].grad.to_local()), f"{name} has not the bits of FSDP2"
        assert torch.allclose(found[0].grad.full_tensor(), grad * 0.5, rtol=1e-10, atol=1e-12), name


@ranks(4)
def hsdp_tensor_parallel_parameters_of_another_mesh_are_refused(folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    model = Parallel()
    parallelize_module(model, mesh["model"], {"wide": ColwiseParallel()})
    raises(ValueError, "parameter wide.weight is a DTensor on", lambda: fully_shard(model, mesh=mesh["model"]))
    raises(ValueError, "must be disjoint named axes of one mesh", lambda: fully_shard(model))
    assert type(model) is Parallel


# ---- parameters over the whole mesh ----

def _over_all(mesh, dims, shard, tensor_axis="model", **options):
    """A model whose parameters are DTensors on all of a mesh, cut along one axis of it; inputs are parts of a batch there."""
    model = Parallel().double()
    cuts = {"wide.weight": Shard(0), "wide.bias": Shard(0), "narrow.weight": Shard(1)}
    data = [name for name in mesh.mesh_dim_names if name != tensor_axis]
    for name, module in model.named_modules():
        for attribute, param in list(module.named_parameters(recurse=False)):
            cut = cuts.get(f"{name}.{attribute}", Replicate())
            placements = [Replicate() if axis in data else cut for axis in mesh.mesh_dim_names]
            setattr(module, attribute, nn.Parameter(distribute_tensor(param.detach(), mesh, placements)))
    for layer in (model.wide, model.narrow):
        shard(layer, mesh=mesh, dp_mesh_dims=dims, **options)
    return shard(model, mesh=mesh, dp_mesh_dims=dims, **options)


def _input_over_all(mesh, x, tensor_axis="model"):
    return DTensor.from_local(x.double(), mesh, [Replicate() if axis == tensor_axis else Shard(0) for axis in mesh.mesh_dim_names],
                              run_check=False)


def _data_rank(mesh, tensor_axis="model"):
    number = 0
    for axis in mesh.mesh_dim_names:
        if axis != tensor_axis:
            number = number * mesh[axis].size() + mesh.get_local_rank(axis)
    return number


@ranks(4)
def hsdp_parameters_over_the_whole_mesh(folder):
    dims = {("data", "model"): DataParallelMeshDims(shard="data"), ("model", "data"): DataParallelMeshDims(shard="data"),
            ("copies", "data", "model"): DataParallelMeshDims(shard="data", replicate="copies"),
            ("outer", "inner", "model"): DataParallelMeshDims(shard=("outer", "inner"))}
    shapes = {2: (2, 2), 3: (2, 2, 1)}
    for names, named in dims.items():
        mesh = init_device_mesh("cpu", shapes[len(names)], mesh_dim_names=names)
        models = [_over_all(mesh, named, shard, reshard_after_forward=True) for shard in (fully_shard, fsdp.fully_shard)]
        for model in models:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, foreach=False)
            for step in range(STEPS):
                x = _input_over_all(mesh, batch(step, _data_rank(mesh)))
                model(x).redistribute(placements=x.placements).to_local().pow(2).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        ours, theirs = models
        for (name, found), expected in zip(ours.named_parameters(), theirs.parameters(), strict=True):
            assert (found.placements, found.device_mesh) == (expected.placements, expected.device_mesh), (names, name, found.placements)
            assert torch.allclose(found.to_local(), expected.to_local(), rtol=1e-12, atol=1e-14), (names, name)
        count = mesh.size() // mesh["model"].size()
        alone, made = Parallel().double(), None
        optimizer = sgd(alone)
        for step in range(STEPS):
            made = None
            for rank in range(count):
                loss = alone(batch(step, rank).double()).pow(2).sum()
                made = add(made, torch.autograd.grad(loss, list(alone.parameters())))
            for param, grad in zip(alone.parameters(), made, strict=True):
                param.grad = grad / count
            optimizer.step()
        for name, value in alone.state_dict().items():
            assert torch.allclose(ours.state_dict()[name].full_tensor(), value, rtol=1e-10, atol=1e-12), (names, name)


@ranks(4)
def hsdp_parameters_over_the_whole_mesh_are_saved_and_checked(folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    dims = DataParallelMeshDims(shard="data")
    model = _over_all(mesh, dims, fully_shard)
    assert model.wide.weight.placements == (_StridedShard(0, split_factor=2), Shard(0)) and model.wide.weight.device_mesh == mesh
    assert model.last.weight.placements == (Shard(0), Replicate())
    shardwright.torch.save(model.state_dict(), folder / "saved")
    other = _over_all(mesh, DataParallelMeshDims(replicate="data"), fully_shard)
    assert other.wide.weight.placements == (Replicate(), Shard(0))
    for param in other.parameters():
        nn.init.zeros_(param)
    state = other.state_dict()
    shardwright.torch.load(folder / "saved", state)
    other.load_state_dict(state)
    for name, value in Parallel().double().state_dict().items():
        assert torch.equal(other.state_dict()[name].full_tensor(), value), name
    model.load_state_dict({name: value + 1 for name, value in Parallel().double().state_dict().items()})
    for name, value in Parallel().double().state_dict().items():
        assert torch.equal(model.state_dict()[name].full_tensor(), value + 1), name
    layer = nn.Linear(4, 4)
    layer.weight = nn.Parameter(distribute_tensor(layer.weight.detach(), mesh, [Shard(0), Replicate()]))
    raises(ValueError, "it must be the same along the axis 'data', which dp_mesh_dims names",
           lambda: fully_shard(layer, mesh=mesh, dp_mesh_dims=dims))
    assert type(layer) is nn.Linear
