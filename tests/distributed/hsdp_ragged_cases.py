# SPDX-License-Identifier: Apache-2.0
"""Cases of fully_shard with layout="ragged": the bits of training, what state dicts and checkpoints are, and what is refused."""
import shardwright.torch
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from cases import ranks
from hsdp_cases import batch, loss_of, network, raises, sgd, sharded, train, trained_alone
from hsdp_checkpoint_cases import (AFTER, BEFORE, adamw, assert_continued, group_over, mesh_of, state_of, whole)
from hsdp_checkpoint_cases import train as train_steps
from shardwright.torch.hsdp import MixedPrecisionPolicy, RaggedTensor, fully_shard, get_model_state_dict, set_model_state_dict
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard


def ragged(model, **options):
    return sharded(model, layout="ragged", **options)


def assert_whole(model, expected):
    for name, value in expected.state_dict().items():
        assert torch.equal(model.state_dict()[name].full_tensor(), value), name


def rows_of_all(tensor):
    rows = [None] * dist.get_world_size()
    dist.all_gather_object(rows, tensor.rows)
    return [each for each in rows if each[0] < each[1]]


# ---- training ----

@ranks(2, 4)
def hsdp_ragged_training_has_the_bits_of_one_process(folder):
    for optimizer in (sgd, adamw):
        for options in ({}, {"reshard_after_forward": False}, {"reshard_after_forward": 2}, {"comm_fusion": False}):
            model = ragged(network(), **options)
            assert all(isinstance(each, RaggedTensor) and isinstance(each, nn.Parameter) for each in model.parameters())
            train(model, optimizer(model))
            assert_whole(model, trained_alone(optimizer))
    rows = rows_of_all(model[0].weight)
    assert rows[0][0] == 0 and rows[-1][1] == 37 and all(a[1] == b[0] for a, b in zip(rows, rows[1:], strict=False)), rows


@ranks(4)
def hsdp_ragged_rows_are_not_those_of_chunks(folder):
    """Two tensors of one range: had each its own cut, each rank would have a part of both."""
    layer = fully_shard(nn.Linear(8, 12), layout="ragged")
    torch.manual_seed(3)
    held = [layer.weight.to_local().numel(), layer.bias.to_local().numel()]
    everyone = [None] * 4
    dist.all_gather_object(everyone, held)
    assert sum(each[0] for each in everyone) == 96 and sum(each[1] for each in everyone) == 12
    assert any(0 in each for each in everyone), everyone
    assert layer.weight.shape == (12, 8) and layer.weight.full_tensor().shape == (12, 8)


@ranks(4)
def hsdp_ragged_replicas_accumulate(folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    model = ragged(network(), mesh=mesh)
    train(model, sgd(model))
    assert_whole(model, trained_alone(shards=2))
    setters = {"partial": lambda model, is_last: model.set_requires_all_reduce(is_last),
               "local": lambda model, is_last: model.set_requires_gradient_sync(is_last)}
    for name, before in setters.items():
        of_rows, of_ranges = sharded(network(), mesh=mesh), ragged(network(), mesh=mesh)
        for each in (of_rows, of_ranges):
            train(each, sgd(each), 2, before)
        for (param, found), expected in zip(of_ranges.named_parameters(), of_rows.parameters(), strict=True):
            assert torch.equal(found.full_tensor(), expected.full_tensor()), (name, param)


@ranks(2)
def hsdp_ragged_units_take_the_other_options(folder):
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    main = MixedPrecisionPolicy(param_dtype=torch.bfloat16, apply_grad_on_fp32_main_grad=True)
    for options in ({"mp_policy": half}, {"mp_policy": main}, {"threshold": 200}):
        made = []
        for shard in (ragged, sharded):
            model = shard(network(), **options)
            model[2].bias.requires_grad_(False)
            loss_of(model, batch(0, dist.get_rank())).backward()
            made.append([getattr(each, "main_grad", None) if options.get("mp_policy") is main else each.grad
                         for each in model.parameters()])
        for found, expected in zip(*made, strict=True):
            assert (found is None) == (expected is None)
            assert found is None or torch.equal(found.full_tensor(), expected.full_tensor()), options
    small = ragged(network(), threshold=200)
    assert small[0].bias.to_local().shape == (37,) and torch.equal(small[0].bias.full_tensor(), network()[0].bias)


@ranks(2)
def hsdp_ragged_gradients_are_clipped_by_the_norm_of_all(folder):
    for order in (2.0, 1.0, float("inf")):
        norms = []
        for shard in (ragged, sharded):
            model = shard(network())
            loss_of(model, batch(0, dist.get_rank())).backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5, norm_type=order)
            norms.append((norm.full_tensor() if hasattr(norm, "full_tensor") else norm,
                          [each.grad.full_tensor() for each in model.parameters()]))
        (found, grads), (expected, others) = norms
        assert torch.allclose(found, expected, rtol=1e-6, atol=0), order
        assert all(torch.allclose(a, b, rtol=1e-6, atol=1e-7) for a, b in zip(grads, others, strict=True))


@ranks(2)
def hsdp_ragged_tensors_compute_each_element(folder):
    weight = ragged(network())[0].weight.detach()
    expected = network()[0].weight.detach()
    assert torch.equal((weight * 2 + weight).full_tensor(), expected * 2 + expected)
    assert torch.equal(torch.lerp(weight, torch.zeros_like(weight), 0.25).full_tensor(), torch.lerp(expected, torch.zeros(37, 13), 0.25))
    assert torch.equal(weight.add(expected).full_tensor(), expected + expected), "a whole tensor beside it is cut alike"
    assert weight.double().dtype == torch.float64 and torch.equal(weight.double().full_tensor(), expected.double())
    weights, zeros = [weight.clone(), weight.clone()], [torch.zeros_like(weight)] * 2
    torch._foreach_add_(weights, [weight, torch.ones_like(weight)], alpha=2)
    assert torch.equal(weights[1].full_tensor(), expected + 2) and isinstance(torch._foreach_mul(zeros, 2.0)[0], RaggedTensor)
    before = weight._version
    weight.mul_(2)
    assert weight._version > before, "the next forward sees it"
    raises(NotImplementedError, "to_local()", lambda: weight @ torch.ones(13))
    raises(NotImplementedError, "to_local()", lambda: weight.sum())
    raises(NotImplementedError, "to_local()", lambda: nn.init.normal_(weight))
    raises(NotImplementedError, "to_local()", lambda: expected.clone().add_(weight))
    raises(NotImplementedError, "to_local()", lambda: weight + torch.ones(13))
    other = RaggedTensor(weight.to_local(), (40, 13), weight.begin + 1, weight.device_mesh, 0)
    raises(NotImplementedError, "are not the same", lambda: weight + other)
    assert "RaggedTensor(rows" in repr(weight)


# ---- state dicts ----

def _with_buffer(seed):
    model = network(seed)
    model.register_buffer("steps", torch.tensor([3.0, seed]))
    return model


@ranks(2, 4)
def hsdp_ragged_state_dicts_are_got_and_set(folder):
    first = dist.get_rank() == 0
    for full in (False, True):
        for offload in (False, True):
            options = StateDictOptions(full_state_dict=full, cpu_offload=offload)
            given = get_model_state_dict(ragged(_with_buffer(2)), options=options)
            if full and offload and not first:
                assert given == {}
            else:
                assert list(given) == list(_with_buffer(2).state_dict())
                assert all(isinstance(value, RaggedTensor) == (not full and name != "steps") for name, value in given.items())
            if full:
                assert all(torch.equal(value, _with_buffer(2).state_dict()[name]) for name, value in given.items())
            model = ragged(_with_buffer(1))
            model(batch(0, 0))  # with parameters that are whole
            broadcast = StateDictOptions(full_state_dict=full, cpu_offload=offload, broadcast_from_rank0=full and offload)
            set_model_state_dict(model, given, options=broadcast)
            for name, value in _with_buffer(2).state_dict().items():
                found = model.state_dict()[name]
                assert torch.equal(found.full_tensor() if isinstance(found, RaggedTensor) else found, value), (full, offload, name)
            assert torch.equal(model(batch(0, 0)), _with_buffer(2)(batch(0, 0)))


@ranks(2)
def hsdp_ragged_modules_load_what_is_there(folder):
    model, alone = ragged(network(1)), network(2)
    optimizer = sgd(model)
    model.load_state_dict(alone.state_dict())
    assert_whole(model, alone)
    model.load_state_dict({name: value.to_local().clone() for name, value in ragged(network(3)).state_dict().items()})
    assert_whole(model, network(3))
    model.load_state_dict(ragged(network(4)).state_dict(), assign=True)
    assert_whole(model, network(4))
    assert torch.equal(model(batch(0, 0)), network(4)(batch(0, 0)))
    raises(ValueError, "0.weight: a tensor of shape (2, 2)", lambda: model.load_state_dict({"0.weight": torch.ones(2, 2)}, strict=False))
    raises(ValueError, "has other rows than", lambda: model.load_state_dict(sharded(network()).state_dict()))
    raises(ValueError, "give full_tensor() of it", lambda: sharded(network()).load_state_dict(model.state_dict()))
    del optimizer


@ranks(2)
def hsdp_ragged_modules_begin_on_meta(folder):
    with torch.device("meta"):
        model = network()
    model = ragged(model)
    assert all(each.to_local().is_meta for each in model.parameters())
    model.to_empty(device="cpu")
    model.load_state_dict(network(6).state_dict())
    optimizer = sgd(model)
    train(model, optimizer)
    assert_whole(model, trained_alone(model=network(6)))


# ---- checkpoints ----

@ranks(4)
def hsdp_ragged_checkpoints_are_for_any_mesh_and_layout(folder):
    model = ragged(network())
    optimizer = adamw(model)
    train_steps(model, optimizer, range(BEFORE))
    shardwright.torch.save(state_of(model, optimizer), f"{folder}/ragged")
    for ranks_of_it in ([0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [[0, 1], [2, 3]]):
        mesh = mesh_of(ranks_of_it)
        if mesh.get_coordinate() is not None:
            for options in ({}, {"layout": "ragged"}):
                assert_continued(mesh, f"{folder}/ragged", **options)
        dist.barrier()


@ranks(4)
def hsdp_checkpoints_go_from_ragged_to_rows_and_back(folder):
    """Each mesh saves in its layout what it has loaded, and the last one, of rows, has the bits of the first."""
    model = ragged(network())
    optimizer = adamw(model)
    train_steps(model, optimizer, range(BEFORE))
    path = f"{folder}/0"
    shardwright.torch.save(state_of(model, optimizer), path)
    hops = [([0], "row"), ([0, 1, 2], "ragged"), ([0, 1], "ragged"), ([[0, 1], [2, 3]], "ragged"), ([0, 1, 2, 3], "row")]
    for number, (ranks_of_it, layout) in enumerate(hops):
        mesh = mesh_of(ranks_of_it)
        if mesh.get_coordinate() is not None:
            other = sharded(network(9), mesh=mesh, layout=layout)
            other_optimizer = adamw(other)
            state = state_of(other, other_optimizer)
            shardwright.torch.load(path, into=state, process_group=group_over(mesh))
            set_state_dict(other, other_optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
            shardwright.torch.save(state_of(other, other_optimizer), f"{folder}/{number + 1}", process_group=group_over(mesh))
        path = f"{folder}/{number + 1}"
        dist.barrier()
    for (name, found), wanted in zip(other.named_parameters(), model.parameters(), strict=True):
        assert found.placements == (Shard(0),) and torch.equal(found.full_tensor(), wanted.full_tensor()), name
        for key, value in optimizer.state[wanted].items():
            assert torch.equal(whole(other_optimizer.state[found][key]), whole(value)), (name, key)
    train_steps(other, other_optimizer, range(BEFORE, BEFORE + AFTER))
    train_steps(model, optimizer, range(BEFORE, BEFORE + AFTER))
    for found, wanted in zip(other.parameters(), model.parameters(), strict=True):
        assert torch.equal(found.full_tensor(), wanted.full_tensor())


@ranks(2)
def hsdp_ragged_tensors_go_through_torchs_checkpoints(folder):
    for number, (save, load) in enumerate(((dcp.save, dcp.load), (shardwright.torch.dcp.save, shardwright.torch.dcp.load))):
        model, target = ragged(network(1)), sharded(network(2))
        save({"model": model.state_dict()}, checkpoint_id=f"{folder}/{number}")
        state = {"model": target.state_dict()}
        load(state, checkpoint_id=f"{folder}/{number}")
        target.load_state_dict(state["model"])
        assert_whole(target, network(1))
        back = {"model": ragged(network(3)).state_dict()}
        load(back, checkpoint_id=f"{folder}/{number}")
        assert all(torch.equal(value.full_tensor(), network(1).state_dict()[name]) for name, value in back["model"].items())


# ---- what is refused ----

@ranks(2)
def hsdp_ragged_units_refuse_what_they_cannot_cut(folder):
    raises(ValueError, "layout is 'flat'; it must be 'row' or 'ragged'", lambda: fully_shard(nn.Linear(2, 2), layout="flat"))
    model = nn.Linear(2, 2)
    raises(ValueError, "cuts the first dimension only", lambda: fully_shard(
        model, layout="ragged", shard_placement_fn=lambda param: Shard(param.dim() - 1)))
    assert type(model) is nn.Linear and type(model.weight) is nn.Parameter  # as it was
    changed = nn.ParameterDict({"a": nn.Parameter(torch.rand(5, 3)), "b": nn.Parameter(torch.rand(7))})

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.values = changed

        def forward(self):
            return self.values["a"].sum() + self.values["b"].sum()

    module = fully_shard(Both(), layout="ragged")
    module.values["a"] = nn.Parameter(module.values["a"].detach().double())
    raises(RuntimeError, "change them before", module)
