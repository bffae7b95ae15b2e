# SPDX-License-Identifier: Apache-2.0
"""Cases of fully_shard whose parameters are not all alike: computed with in several dtypes, gathered one by one, on meshes of other
kinds, and of lists of modules."""
import copy

import torch
import torch.distributed as dist
from cases import ranks
from hsdp_cases import (STEPS, add, assert_same, batch, loss_of, network, raises, sgd, sharded, step_alone, train,
                        trained_alone)
from shardwright.hsdp import Mesh
from shardwright.torch import MixedPrecisionPolicy, fully_shard
from shardwright.torch.hsdp._state import state_of
from torch import nn
from torch.distributed import fsdp
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import DataParallelMeshDims
from torch.distributed.tensor import Replicate, Shard


def cores_of(model):
    """Units of the library behind a model that has run forward."""
    return [unit for core in state_of(model).context.cores for unit in core.units]


# ---- dtypes ----

class Sums(nn.Module):
    """A weight in bfloat16 between two scales in float32."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.scale = nn.Parameter(torch.rand(13))
        self.weight, self.last = nn.Parameter(torch.rand(5, 13)), nn.Parameter(torch.rand(5))

    def forward(self, x):
        assert self.weight.dtype == torch.bfloat16 and x.dtype == torch.bfloat16
        assert self.scale.dtype == self.last.dtype == torch.float32
        return nn.functional.linear((x * self.scale).bfloat16(), self.weight).float() * self.last


def _scales_stay(param):
    return param.dtype if param.dim() == 1 else None


@ranks(2)
def hsdp_parameters_keep_their_dtype_t26(folder):
    for policy in (None, True, False, 2):
        ours, theirs = Sums(), Sums()
        fully_shard(ours, reshard_after_forward=policy, mp_policy=MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32, param_dtype_override_fn=_scales_stay))
        fsdp.fully_shard(theirs, mp_policy=fsdp.MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32, param_dtype_override_fn=_scales_stay))
        for model in (ours, theirs):
            train(model, sgd(model))
        for (name, found), expected in zip(ours.named_parameters(), theirs.parameters(), strict=True):
            assert torch.equal(found.full_tensor(), expected.full_tensor()), name
        assert len(cores_of(ours)) == 2


@ranks(2)
def hsdp_dtypes_of_parameters_are_their_own_or_the_policys(folder):
    def refused(value):
        model = Sums()
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, param_dtype_override_fn=lambda param: value)
        raises(ValueError, f"param_dtype_override_fn gives {value!r} for scale; it must be None, param_dtype (torch.bfloat16) or "
               "the dtype that the parameter has (torch.float32)", lambda: fully_shard(model, mp_policy=policy))
        assert type(model) is Sums and type(model.scale) is nn.Parameter  # as it was

    for value in (torch.float16, "bfloat16"):
        refused(value)
    raises(TypeError, "positional", lambda: MixedPrecisionPolicy(None, None, None, True, False, _scales_stay))
    every = MixedPrecisionPolicy(param_dtype=torch.bfloat16, param_dtype_override_fn=lambda param: torch.bfloat16)
    layer = fully_shard(nn.Linear(13, 5), mp_policy=every)
    assert layer(batch(0, 0)).dtype == torch.bfloat16 and len(cores_of(layer)) == 1


@ranks(2)
def hsdp_parts_of_a_unit_are_one_unit_to_its_methods(folder):
    layer = Sums()
    fully_shard(layer, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, param_dtype_override_fn=_scales_stay))
    handle = layer.unshard(async_op=True)
    handle.wait()
    assert layer.weight.dtype == torch.bfloat16 and layer.weight.shape == (5, 13) and layer.scale.shape == (13,)
    layer.reshard()
    assert type(layer.scale.data).__name__ == "DTensor"
    layer.last.requires_grad_(False)
    layer.set_requires_gradient_sync(False)
    loss_of(layer, batch(0, dist.get_rank())).backward()
    assert layer.weight.grad is None
    layer.set_requires_gradient_sync(True)
    loss_of(layer, batch(0, dist.get_rank())).backward()
    assert layer.weight.grad is not None and layer.scale.grad is not None and layer.last.grad is None


# ---- one collective for each parameter ----

@ranks(2)
def hsdp_parameters_travel_one_by_one(folder):
    expected = trained_alone()
    for policy in (True, None, 2):
        model = sharded(network(), comm_fusion=False, reshard_after_forward=policy)
        model[0].set_modules_to_forward_prefetch([model[2], model[4]])
        train(model, sgd(model), 2, lambda model, is_last: model.set_is_last_backward(is_last))
        whole = sharded(network())
        train(whole, sgd(whole), 2, lambda model, is_last: model.set_is_last_backward(is_last))
        for name, value in whole.state_dict().items():
            assert torch.equal(model.state_dict()[name].full_tensor(), value.full_tensor()), name
        assert [each.param_count for each in cores_of(model)] == [0] + [1] * 6
        model = sharded(network(), comm_fusion=False, reshard_after_forward=policy)
        train(model, sgd(model))
        assert_same(model, expected)
    model = fully_shard(nn.Linear(13, 5), comm_fusion=False)
    loss = loss_of(model, batch(0, 0))
    assert [each.state for each in cores_of(model)] == ["sharded"] * 2, "a model of one unit has no root around it"
    loss.backward()
    outer = nn.Sequential(fully_shard(nn.Linear(13, 5), comm_fusion=False), nn.Linear(5, 5))
    fully_shard(outer, comm_fusion=False)(batch(0, 0))
    assert [each.state for each in cores_of(outer)] == ["unsharded"] * 2 + ["sharded"] * 2, "the root keeps its parameters"
    raises(ValueError, "comm_fusion is 1; it must be True or False", lambda: fully_shard(nn.Linear(2, 2), comm_fusion=1))


# ---- meshes ----

@ranks(2, 4)
def hsdp_meshes_of_the_library(folder):
    world = dist.get_world_size()
    order = [0, 2, 1, 3] if world == 4 else [0, 1]
    given = Mesh((world // 2, 2), rank=dist.get_rank(), ranks=order)
    model = sharded(network(), mesh=given)
    assert model[0].weight.device_mesh.mesh.flatten().tolist() == order
    assert model[0].weight.device_mesh is model[2].weight.device_mesh, "one Mesh is one DeviceMesh"
    train(model, sgd(model))
    alone = network()
    optimizer = sgd(alone)
    for step in range(STEPS):
        total = None
        for replica in range(world // 2):
            made = [torch.autograd.grad(loss_of(alone, batch(step, rank)), list(alone.parameters()))
                    for rank in order[2 * replica:2 * replica + 2]]
            total = add(total, add(*made))
        for param, grad in zip(alone.parameters(), total, strict=True):
            param.grad = grad * (1 / world)
        optimizer.step()
    assert_same(model, alone)
    both = sharded(network(), mesh=Mesh((world // 2, 2), rank=dist.get_rank(), names=("replicas", "shards")))
    assert both[0].weight.device_mesh.mesh_dim_names == ("replicas", "shards")
    train(both, sgd(both))
    assert_same(both, trained_alone(shards=2))
    raises(ValueError, "mesh is 2; it must be a DeviceMesh, a shardwright.hsdp.Mesh or None",
           lambda: fully_shard(nn.Linear(2, 2), mesh=2))


@ranks(4)
def hsdp_axes_of_a_larger_mesh(folder):
    mesh = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("outer", "middle", "inner"))
    expected = {"shards": trained_alone(), "both": trained_alone(shards=2)}
    wide = sharded(network(), mesh=mesh, dp_mesh_dims=DataParallelMeshDims(shard=("outer", "inner")))
    assert wide[0].weight.placements == (Shard(0),) and wide[0].weight.device_mesh.size() == 4
    both = sharded(network(), mesh=mesh, dp_mesh_dims=DataParallelMeshDims(shard=("middle", "inner"), replicate="outer"))
    assert both[0].weight.placements == (Replicate(), Shard(0)) and both[0].weight.device_mesh.shape == (2, 2)
    whole = sharded(network(), mesh=mesh, dp_mesh_dims=DataParallelMeshDims(replicate=("outer", "inner")))
    assert whole[0].weight.placements == (Replicate(),) and whole[0].weight.to_local().shape == (37, 13)
    for model, alone in ((wide, expected["shards"]), (both, expected["both"]), (whole, expected["shards"])):
        train(model, sgd(model))
        assert_same(model, alone)
    half = sharded(network(), mesh=mesh, dp_mesh_dims=DataParallelMeshDims(shard="inner"))
    loss_of(half, batch(0, dist.get_rank())).backward()
    pair = [rank for rank in range(4) if rank // 2 == dist.get_rank() // 2]
    made = [torch.autograd.grad(loss_of(alone := network(), batch(0, rank)), alone[0].weight)[0] for rank in pair]
    assert torch.equal(half[0].weight.grad.full_tensor(), (made[0] + made[1]) * 0.5), "ranks of one row share data, and no others"


@ranks(5)
def hsdp_ranks_of_a_mesh_ask_no_others_for_neighbours(folder):
    """One rank does not train, and one that does has a group of its own, so that ranks have counted other groups."""
    mesh = DeviceMesh("cpu", [0, 1, 3, 4])
    if dist.get_rank() == 2:
        return
    if dist.get_rank() == 4:
        dist.new_group([4], use_local_synchronization=True)
    number = mesh.get_local_rank()
    model = sharded(network(), mesh=mesh, reshard_after_forward=2)
    alone = network()
    optimizer, alone_optimizer = sgd(model), sgd(alone)
    for step in range(STEPS):
        loss_of(model, batch(step, number)).backward()
        optimizer.step()
        optimizer.zero_grad()
        step_alone(alone, alone_optimizer, step, 4)
    assert_same(model, alone)


@ranks(4)
def hsdp_meshes_of_the_library_are_made_by_their_ranks_alone(folder):
    """Two of four ranks train; of the others one makes groups of its own meanwhile, so that counts of groups differ."""
    rank = dist.get_rank()
    if rank == 0:
        Mesh((1,), rank=0, ranks=[0])
        fully_shard(nn.Linear(2, 2), mesh=Mesh((1,), rank=0, ranks=[0]))
    if rank in (1, 3):
        if rank == 3:
            fully_shard(nn.Linear(2, 2), mesh=Mesh((1,), rank=3, ranks=[3]))
        for given in (Mesh((2,), rank=rank, ranks=[1, 3]), Mesh((2, 1), rank=rank, ranks=[1, 3]), Mesh((2,), rank=rank, ranks=[1, 3])):
            model = sharded(network(), mesh=given)
            optimizer = sgd(model)
            alone = network()
            alone_optimizer = sgd(alone)
            for step in range(STEPS):
                loss_of(model, batch(step, rank // 2)).backward()
                optimizer.step()
                optimizer.zero_grad()
                step_alone(alone, alone_optimizer, step, *((2, 1) if len(given.shape) == 1 else (1, 2)))
            assert_same(model, alone)


@ranks(4)
def hsdp_meshes_whose_ranks_do_not_rise_are_refused(folder):
    rank = dist.get_rank()
    raises(ValueError, "the ranks of the mesh [3, 2, 1, 0] do not rise along axis 0",
           lambda: fully_shard(nn.Linear(2, 2), mesh=Mesh((4,), rank=rank, ranks=[3, 2, 1, 0])))
    raises(ValueError, "do not rise along axis 1", lambda: fully_shard(
        nn.Linear(2, 2), mesh=Mesh((2, 2), rank=rank, ranks=[1, 0, 3, 2])))
    layer = nn.Linear(2, 2)
    raises(ValueError, "do not rise along axis 0", lambda: fully_shard(layer, mesh=DeviceMesh("cpu", [[2, 3], [0, 1]],
                                                                                              mesh_dim_names=("a", "b"))))
    assert type(layer) is nn.Linear


@ranks(2)
def hsdp_axes_that_the_mesh_has_not_are_refused(folder):
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("data",))

    def refused(text, dims, mesh=mesh):
        raises(ValueError, text, lambda: fully_shard(nn.Linear(2, 2), mesh=mesh, dp_mesh_dims=dims))

    refused("names the axis 'model'; the mesh has data", DataParallelMeshDims(shard="model"))
    refused("it must name axes, each once", DataParallelMeshDims(shard="data", replicate="data"))
    refused("it must be a DataParallelMeshDims", "data")
    refused("there is no mesh", DataParallelMeshDims(shard="data"), mesh=None)
    mixed = nn.Sequential(fully_shard(nn.Linear(13, 5), mesh=mesh))
    fully_shard(mixed, mesh=mesh, dp_mesh_dims=DataParallelMeshDims(replicate="data"))
    raises(ValueError, "the modules of one model share a mesh", lambda: mixed(batch(0, 0)))


# ---- lists of modules ----

def _count_gathers(core):
    """What a unit was asked for while it had no parameters, phase by phase, and every forward."""
    gathers = []
    for name in ("pre_forward", "pre_backward", "unshard"):
        def counted(*args, name=name, call=getattr(core, name), **options):
            if name == "pre_forward" or core.state != "unsharded":
                gathers.append(name)
            return call(*args, **options)
        setattr(core, name, counted)
    return gathers


class Skips(nn.Module):
    """Layers of one unit around another, of which the last may not run."""

    def __init__(self):
        super().__init__()
        self.layers, self.skips = network(), False

    def forward(self, x):
        x = self.layers[:4](x)
        return x if self.skips else self.layers[4](x)


def _with_list():
    model = Skips()
    fully_shard([model.layers[0], model.layers[4]], reshard_after_forward=True)
    fully_shard(model.layers[2])
    fully_shard(model)
    states = []
    model.layers[2].register_forward_hook(lambda *_: states.append(state_of(model.layers[0]).unit.core.state))
    model.layers[2].register_full_backward_hook(lambda *_: states.append(state_of(model.layers[0]).unit.core.state))
    return model, states


@ranks(2)
def hsdp_lists_of_modules_are_gathered_once(folder):
    model, states = _with_list()
    model(batch(0, 0))
    core = state_of(model.layers[0]).unit.core
    assert core.state == "sharded" and states == ["unsharded"]
    gathers = _count_gathers(core)
    for inputs_need_gradients in (False, True):
        states.clear()
        loss_of(model, batch(0, dist.get_rank()).requires_grad_(inputs_need_gradients)).backward()
        assert gathers == ["pre_forward", "pre_backward"] and states == ["unsharded"] * 2, (gathers, states)
        assert core.state == "sharded"
        gathers.clear()
    with torch.no_grad():
        model(batch(0, 0))
    assert gathers == ["pre_forward"] and core.state == "sharded"


@ranks(2)
def hsdp_lists_of_modules_end_with_the_root(folder):
    model, _ = _with_list()
    alone = Skips()
    for skips in (True, False, True):
        model.skips = alone.skips = skips
        loss = loss_of(model, batch(0, dist.get_rank()))
        assert state_of(model.layers[0]).unit.core.state == "sharded", "the root has run"
        loss.backward()
        used = list(alone.layers[:4].parameters() if skips else alone.parameters())
        made = [torch.autograd.grad(loss_of(alone, batch(0, rank)), used) for rank in range(2)]
        for (name, found), first, second in zip(model.named_parameters(), *made, strict=False):
            assert torch.equal(found.grad.full_tensor(), (first + second) * 0.5), name
        model.zero_grad()


@ranks(2)
def hsdp_lists_of_modules_are_gathered_anew_where_they_must(folder):
    model, _ = _with_list()
    model(batch(0, 0))
    gathers = _count_gathers(state_of(model.layers[0]).unit.core)
    hook = model.layers[2].register_forward_hook(lambda *_: model.layers[0].reshard())
    loss_of(model, batch(0, dist.get_rank())).backward()
    assert gathers == ["pre_forward", "pre_forward", "pre_backward"]
    hook.remove()
    alone = network()
    made = [torch.autograd.grad(loss_of(alone, batch(0, rank)), list(alone.parameters())) for rank in range(2)]
    for found, first, second in zip(model.parameters(), *made, strict=True):
        assert torch.equal(found.grad.full_tensor(), (first + second) * 0.5)
    listed = network()
    fully_shard([listed[0], listed[2], listed[4]])  # nothing is around them
    gathers = None
    for _ in range(2):
        loss_of(listed, batch(0, dist.get_rank())).backward()
        core = state_of(listed[0]).unit.core
        assert gathers is None or gathers == ["pre_forward", "pre_backward"], gathers
        assert core.state == "sharded"
        gathers = _count_gathers(core)


# ---- parameters with a mesh of their own ----

class Experts(nn.Module):
    """A layer that all ranks have, and one of which each expert has its own."""

    def __init__(self, number):
        super().__init__()
        torch.manual_seed(0)
        self.shared, self.outer = nn.Linear(13, 7), nn.Linear(7, 7)
        torch.manual_seed(1 + number)
        self.expert = nn.Linear(7, 5)

    def forward(self, x):
        return self.expert(self.outer(self.shared(x)))


def _with_experts(mesh, number, **options):
    model = Experts(number)
    own = {model.expert.weight, model.expert.bias}
    options |= {"mesh": mesh["data", "expert"]._flatten("all"), "shard_placement_fn": lambda param: (Shard(0), mesh["data"])
                if param in own else None}
    fully_shard(model.outer, **options)
    return fully_shard(model, **options)


@ranks(4)
def hsdp_parameters_have_meshes_of_their_own_t25(folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "expert"))
    number = mesh.get_local_rank("expert")
    experts = [Experts(each) for each in range(2)]
    for policy in (None, True, 2):
        model = _with_experts(mesh, number, reshard_after_forward=policy)
        assert model.expert.weight.device_mesh == mesh["data"] and model.shared.weight.device_mesh.size() == 4
        train(model, sgd(model))
        for name, value in _experts_alone(experts)[number].items():
            assert torch.equal(model.state_dict()[name].full_tensor(), value), name
        assert len(cores_of(model)) == 3
    raises(ValueError, "reshard_after_forward is 2, which does not divide the 1 ranks of the mesh of bias", lambda: fully_shard(
        nn.Linear(2, 2), reshard_after_forward=2, shard_placement_fn=lambda param: (
            Shard(0), Mesh((1,), rank=dist.get_rank(), ranks=[dist.get_rank()])) if param.dim() == 1 else None))
    raises(ValueError, "it must be None, a Shard, or one and its mesh",
           lambda: fully_shard(nn.Linear(2, 2), shard_placement_fn=lambda param: (Shard(0), 4)))


def _experts_alone(experts):
    """States of both experts' models of one process; of what they share the gradients of all ranks are averaged."""
    models = copy.deepcopy(experts)
    optimizers = [sgd(each) for each in models]
    for step in range(STEPS):
        made = [torch.autograd.grad(loss_of(models[rank % 2], batch(step, rank)), list(models[rank % 2].parameters()))
                for rank in range(4)]
        for number, model in enumerate(models):
            own = add(made[number], made[number + 2])
            shared = add(add(add(made[0], made[1]), made[2]), made[3])
            for (name, param), mine, everyones in zip(model.named_parameters(), own, shared, strict=True):
                param.grad = mine * 0.5 if name.startswith("expert") else everyones * 0.25
        for optimizer in optimizers:
            optimizer.step()
    return [each.state_dict() for each in models]


@ranks(4)
def hsdp_models_over_several_meshes_recover(folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "expert"))
    number = mesh.get_local_rank("expert")
    model = _with_experts(mesh, number)
    model.outer.set_modules_to_forward_prefetch([model])
    loss_of(model, batch(0, 0)).backward()
    model.zero_grad()
    bad = model.shared.register_forward_hook(lambda *_: (_ for _ in ()).throw(KeyError("no batch"))) if dist.get_rank() == 3 else None
    raises((KeyError, RuntimeError), "no batch", lambda: loss_of(model, batch(0, 0)).backward())
    if bad is not None:
        bad.remove()
    model.reset_iter_state()
    train(model, sgd(model))
    for name, value in _experts_alone([Experts(each) for each in range(2)])[number].items():
        assert torch.equal(model.state_dict()[name].full_tensor(), value), name
