# SPDX-License-Identifier: Apache-2.0
"""Cases of shardwright.torch.hsdp: what training with fully_shard gives, against one process that takes the micro-batches in
rank order, and against torch's own fully_shard. Models of some KB."""
import copy

import shardwright
import shardwright.torch
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from cases import ranks
from shardwright.torch.hsdp import (CPUOffloadPolicy, HSDPModule, MixedPrecisionPolicy, fully_shard, get_model_state_dict,
                                    hsdp_sync_stream, register_fsdp_forward_method, set_model_state_dict)
from torch import nn
from torch.distributed import fsdp
from torch.distributed.checkpoint.state_dict import StateDictOptions
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.utils.checkpoint import checkpoint

STEPS = 4


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(13, 37), nn.Tanh(), nn.Linear(37, 29), nn.Tanh(), nn.Linear(29, 3))


def sharded(model, shard=fully_shard, **options):
    for layer in model:
        if isinstance(layer, nn.Linear):
            shard(layer, **options)
    return shard(model, **options)


def batch(step, rank, number=0):
    return torch.randn(4, 13, generator=torch.Generator().manual_seed(1000 * step + 10 * rank + number))


def loss_of(model, x):
    return model(x).pow(2).sum()


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)


def train(model, optimizer, micro_batches=1, before=lambda model, is_last: None):
    for step in range(STEPS):
        for number in range(micro_batches):
            before(model, number + 1 == micro_batches)
            loss_of(model, batch(step, dist.get_rank(), number)).backward()
        optimizer.step()
        optimizer.zero_grad()


def add(left, right):
    return right if left is None else [a + b for a, b in zip(left, right, strict=True)]


def step_alone(model, optimizer, step, shards, replicas=1, micro_batches=1):
    """One process: micro-batches of a rank, then the shards in rank order, then the replicas, then the mean."""
    total = None
    for replica in range(replicas):
        of_shards = None
        for rank in range(replica * shards, (replica + 1) * shards):
            own = None
            for number in range(micro_batches):
                own = add(own, torch.autograd.grad(loss_of(model, batch(step, rank, number)), list(model.parameters())))
            of_shards = add(of_shards, own)
        total = add(total, of_shards)
    for param, grad in zip(model.parameters(), total, strict=True):
        param.grad = grad * (1.0 / (shards * replicas))
    optimizer.step()
    optimizer.zero_grad()


def trained_alone(make_optimizer=sgd, shards=None, micro_batches=1, model=None, steps=STEPS):
    """The whole model of one process that takes the micro-batches of all ranks."""
    model = network() if model is None else model
    optimizer = make_optimizer(model)
    world = dist.get_world_size()
    shards = shards or world
    for step in range(steps):
        step_alone(model, optimizer, step, shards, world // shards, micro_batches)
    return model


def assert_same(model, expected):
    found = model.state_dict()
    assert list(found) == list(expected.state_dict())
    for name, value in expected.state_dict().items():
        assert torch.equal(found[name].full_tensor(), value), name


def raises(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), f"{error!r} does not say {text!r}"
        return
    raise AssertionError(f"{kind.__name__} with {text!r} was not raised")


# ---- training ----

@ranks(2, 4)
def hsdp_training_has_the_bits_of_one_process_t1_t9(folder):
    for optimizer in (sgd, lambda model: torch.optim.AdamW(model.parameters(), lr=0.01)):
        model = sharded(network())
        assert type(model).__name__ == "HSDPSequential" and isinstance(model, HSDPModule)
        assert all(isinstance(each, DTensor) for each in model.parameters())
        train(model, optimizer(model))
        assert_same(model, trained_alone(optimizer))


@ranks(4)
def hsdp_replicas_are_summed_after_shards_t11(folder):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    model = sharded(network(), mesh=mesh)
    train(model, sgd(model))
    assert_same(model, trained_alone(shards=2))
    partial = sharded(network(), mesh=mesh)
    train(partial, sgd(partial), 2, lambda model, is_last: model.set_requires_all_reduce(is_last))
    # Sums over the shard axis of both micro-batches are added before the replicas meet.
    alone = network()
    optimizer = sgd(alone)
    for step in range(STEPS):
        total = None
        for replica in range(2):
            of_replica = None
            for number in range(2):
                of_shards = None
                for shard in range(2):
                    loss = loss_of(alone, batch(step, 2 * replica + shard, number))
                    of_shards = add(of_shards, torch.autograd.grad(loss, list(alone.parameters())))
                of_replica = add(of_replica, of_shards)
            total = add(total, of_replica)
        for param, grad in zip(alone.parameters(), total, strict=True):
            param.grad = grad * 0.25
        optimizer.step()
        optimizer.zero_grad()
    assert_same(partial, alone)


@ranks(2)
def hsdp_gradients_are_accumulated_t10(folder):
    model = sharded(network())
    train(model, sgd(model), 3, lambda model, is_last: model.set_requires_gradient_sync(is_last))
    assert_same(model, trained_alone(micro_batches=3))
    kept = sharded(network())
    kept.set_reshard_after_backward(False)
    train(kept, sgd(kept), 2, lambda model, is_last: model.set_requires_gradient_sync(is_last))
    assert_same(kept, trained_alone(micro_batches=2))


@ranks(4)
def hsdp_policies_after_forward_change_nothing_t6(folder):
    expected = trained_alone()
    for policy in (True, False, None, 1, 2, 4):
        model = sharded(network(), reshard_after_forward=policy)
        train(model, sgd(model))
        assert_same(model, expected)


@ranks(2)
def hsdp_other_dimensions_and_replicated_parameters_t5_t16(folder):
    model = network()
    second = model[2].weight  # 29 x 37: neither is even
    model = sharded(model, replicate_params={second, model[4].bias}, ignored_params={model[0].bias})
    assert model[2].weight.placements == (Replicate(),) and not isinstance(model[0].bias, DTensor)
    assert model[4].weight.placements == (Shard(0),)
    odd = nn.Sequential(nn.Linear(13, 4))
    raises(NotImplementedError, "0.weight of shape (4, 13) cannot be cut evenly along dimension 1",
           lambda: fully_shard(odd, shard_placement_fn=lambda param: Shard(param.dim() - 1) if param.dim() == 2 else None))
    even = nn.Sequential(nn.Linear(13, 8), nn.Tanh(), nn.Linear(8, 3))
    alone = trained_alone(model=copy.deepcopy(even))
    fully_shard(even, shard_placement_fn=lambda param: Shard(1) if param.shape == (3, 8) else None,
                replicate_params={even[0].bias})
    assert even[2].weight.placements == (Shard(1),)
    train(even, sgd(even))
    assert_same(even, alone)


@ranks(2)
def hsdp_activations_are_computed_again_t18(folder):
    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = network()

        def forward(self, x):
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False)
            return x

    def shard(model):
        for layer in model.layers:
            if isinstance(layer, nn.Linear):
                fully_shard(layer)
        return fully_shard(model)

    model = shard(Again())
    train(model, sgd(model))
    found = model.state_dict()
    for name, value in trained_alone().state_dict().items():
        assert torch.equal(found[f"layers.{name}"].full_tensor(), value), name


@ranks(2)
def hsdp_inputs_that_need_gradients_and_several_outputs_t17(folder):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(13, 5), nn.Linear(13, 5)

        def forward(self, x):
            return {"left": self.left(x), "right": [self.right(x)]}

    torch.manual_seed(3)
    model, alone = Two(), None
    alone = copy.deepcopy(model)
    fully_shard(model.left)
    fully_shard(model)
    x = batch(0, dist.get_rank()).requires_grad_()
    out = model(x)
    (out["left"].sum() + out["right"][0].pow(2).sum()).backward()
    y = batch(0, dist.get_rank()).requires_grad_()
    other = alone(y)
    (other["left"].sum() + other["right"][0].pow(2).sum()).backward()
    assert torch.equal(x.grad, y.grad)
    assert all(isinstance(each.grad, DTensor) for each in model.parameters())


@ranks(2)
def hsdp_frozen_unused_and_called_twice_t14_t19(folder):
    model, alone = network(), network()
    for each in (model, alone):
        each[2].weight.requires_grad_(False)
    sharded(model)
    train(model, sgd(model))
    optimizer = sgd(alone)
    for step in range(STEPS):
        loss = sum(loss_of(alone, batch(step, rank)) for rank in range(2)) / 2
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    found = model.state_dict()
    for name, value in alone.state_dict().items():
        assert torch.allclose(found[name].full_tensor(), value, rtol=1e-6, atol=1e-7), name
    model[2].weight.requires_grad_(True)
    loss_of(model, batch(9, dist.get_rank())).backward()
    assert model[2].weight.grad is not None and model[0].weight.grad is not None

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(13, 13), nn.Linear(13, 13)

        def forward(self, x):
            return self.used(self.used(x))

    torch.manual_seed(1)
    twice = Twice()
    once = copy.deepcopy(twice)
    fully_shard(twice.used)
    fully_shard(twice.unused)
    fully_shard(twice)
    loss_of(twice, batch(0, 0)).backward()  # the same batch on both ranks
    loss_of(once, batch(0, 0)).backward()
    assert torch.allclose(twice.used.weight.grad.full_tensor(), once.used.weight.grad, rtol=1e-6)
    unused = twice.unused.weight.grad
    assert unused is None or not unused.full_tensor().any()


@ranks(2)
def hsdp_evaluation_between_steps_and_two_models_t26(folder):
    first, second = sharded(network(1)), sharded(network(2))
    optimizers = sgd(first), sgd(second)
    for step in range(STEPS):
        losses = [loss_of(model, batch(step, dist.get_rank())) for model in (first, second)]
        with torch.no_grad():
            assert torch.equal(first(batch(0, 0)), first(batch(0, 0)))
        for loss in losses:
            loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    assert_same(first, trained_alone(model=network(1)))
    assert_same(second, trained_alone(model=network(2)))


@ranks(2)
def hsdp_norms_are_those_of_the_whole_t21(folder):
    model, alone = sharded(network()), network()
    loss_of(model, batch(0, 0)).backward()
    loss_of(alone, batch(0, 0)).backward()
    found = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    expected = nn.utils.clip_grad_norm_(alone.parameters(), 0.1)
    assert torch.allclose(found.full_tensor(), expected, rtol=1e-6)
    assert torch.allclose(model[0].weight.grad.full_tensor(), alone[0].weight.grad, rtol=1e-5)
    hsdp_sync_stream()


@ranks(2)
def hsdp_sums_and_factors(folder):
    model, alone = sharded(network()), network()
    model.set_reduce_op_type("SUM", recurse=True)
    loss_of(model, batch(0, 0)).backward()
    loss_of(alone, batch(0, 0)).backward()
    assert torch.equal(model[4].weight.grad.full_tensor(), 2 * alone[4].weight.grad)
    model.zero_grad()
    model.set_reduce_op_type("avg", recurse=True)
    model[4].set_gradient_divide_factor(8.0)
    loss_of(model, batch(0, 0)).backward()
    assert torch.equal(model[4].weight.grad.full_tensor(), alone[4].weight.grad / 4)


@ranks(2)
def hsdp_mixed_precision_t13(folder):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float32)
    model = sharded(network(), mp_policy=policy, offload_policy=CPUOffloadPolicy())
    out = model(batch(0, dist.get_rank()))
    assert out.dtype == torch.float32
    out.pow(2).sum().backward()
    assert model[0].weight.dtype == model[0].weight.grad.dtype == torch.float32
    theirs = sharded(network(), fsdp.fully_shard, mp_policy=fsdp.MixedPrecisionPolicy(
        param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float32))
    theirs(batch(0, dist.get_rank())).pow(2).sum().backward()
    for ours, other in zip(model.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(ours.grad.to_local(), other.grad.to_local(), rtol=1e-2, atol=1e-3)
    half = network().to(torch.bfloat16)
    sharded(half, mp_policy=MixedPrecisionPolicy(apply_grad_on_fp32_main_grad=True))
    loss_of(half, batch(0, dist.get_rank()).bfloat16()).backward()
    assert half[0].weight.grad is None and half[0].weight.main_grad.dtype == torch.float32


@ranks(2, 4)
def hsdp_agrees_with_torch(folder):
    model, theirs = sharded(network()), sharded(network(), fsdp.fully_shard)
    train(model, sgd(model))
    train(theirs, sgd(theirs))
    for name, value in theirs.state_dict().items():
        found = model.state_dict()[name]
        assert found.placements == value.placements and found.shape == value.shape
        assert torch.allclose(found.to_local(), value.to_local(), rtol=1e-5, atol=1e-6), name


# ---- units by hand, prefetch ----

@ranks(2)
def hsdp_unshard_and_reshard_by_hand(folder):
    model, whole = sharded(network()), network()
    model.unshard()
    assert not isinstance(model[4].weight, torch.Tensor) or isinstance(model[4].weight, DTensor)
    handle = model[0].unshard(async_op=True)
    handle.wait()
    handle.wait()
    assert torch.equal(model[0].weight, whole[0].weight)
    model[0].reshard()
    assert isinstance(model[0].weight, DTensor)
    dropped = model[2].unshard(async_op=True)
    model[2].reshard()
    dropped.wait()
    assert isinstance(model[2].weight, DTensor)
    model[0].set_modules_to_forward_prefetch([model[2]])
    model[4].set_modules_to_backward_prefetch([model[2], model[0]])
    model.set_reshard_after_forward(True)
    model[0].set_unshard_in_backward(False)
    train(model, sgd(model))
    assert_same(model, trained_alone())


@ranks(2)
def hsdp_backward_is_ended_by_hand_t36(folder):
    model = sharded(network())
    model.set_manual_backward_finalization(True)
    model.set_reduce_scatter_max_input_buffers(2)
    model.set_keep_unsharded_storage(True)
    optimizer = sgd(model)
    for step in range(STEPS):
        loss_of(model, batch(step, dist.get_rank())).backward()
        assert all(each.grad is None for each in optimizer.param_groups[0]["params"])
        if step % 2:
            model.finalize_backward()
        else:
            handle = model.finalize_backward(async_op=True)
            raises(RuntimeError, "is not waited for", lambda: model(batch(0, 0)))
            handle.wait()
            handle.wait()
        optimizer.step()
        optimizer.zero_grad()
    assert_same(model, trained_alone())
    model.set_manual_backward_finalization(False)
    raises(RuntimeError, "set_manual_backward_finalization", model.finalize_backward)


@ranks(2)
def hsdp_other_methods_run_as_forward(folder):
    class Twofold(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(13, 5)

        def forward(self, x):
            return self.layer(x)

        def encode(self, x):
            return self.layer(x) * 2

    torch.manual_seed(4)
    model = Twofold()
    alone = copy.deepcopy(model)
    fully_shard(model)
    register_fsdp_forward_method(model, "encode")
    register_fsdp_forward_method(nn.Linear(2, 2), "forward")
    raises(ValueError, "has no method 'decode'", lambda: register_fsdp_forward_method(model, "decode"))
    x = batch(0, 0)
    assert torch.equal(model.encode(x), alone.encode(x))
    model.encode(x).sum().backward()
    alone.encode(x).sum().backward()
    assert torch.equal(model.layer.weight.grad.full_tensor(), alone.layer.weight.grad)
    for call in (lambda: model.set_custom_all_gather(None), lambda: model.set_custom_reduce_scatter(None),
                 lambda: model.set_allocate_memory_from_process_group_for_comm(True), lambda: model.set_symm_mem_for_comm("x"),
                 lambda: model.set_post_optim_event(object())):
        try:
            call()
        except NotImplementedError:
            continue
        raise AssertionError("a method that is not there says nothing")
    model.set_force_sum_reduction_for_comms(True)
    model.set_reduce_scatter_unused_params(True)
    model.set_post_optim_event(None)
    raises(TypeError, "must be an integer", lambda: model.set_reduce_scatter_max_input_buffers(True))
    raises(ValueError, "1 or above", lambda: model.set_reduce_scatter_max_input_buffers(0))


# ---- state dicts and checkpoints ----

@ranks(2)
def hsdp_state_dicts_in_all_forms(folder):
    model, other = sharded(network(1)), network(2)
    with torch.no_grad():
        model(batch(0, 0))
    sharded_dict = get_model_state_dict(model)
    assert all(isinstance(each, DTensor) for each in sharded_dict.values())
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    assert torch.equal(whole["0.weight"], network(1)[0].weight)
    on_first = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    assert bool(on_first) == (dist.get_rank() == 0)
    model.load_state_dict(other.state_dict())  # whole tensors
    assert_same(model, other)
    assert torch.equal(model(batch(0, 0)), other(batch(0, 0)))
    model.load_state_dict({name: value.to_local() for name, value in sharded_dict.items()})  # sharded_dict was overwritten
    assert_same(model, other)
    model.load_state_dict(sharded(network(3)).state_dict())
    assert_same(model, network(3))
    given = network(4).state_dict() if dist.get_rank() == 0 else {}
    set_model_state_dict(model, given, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    assert_same(model, network(4))
    result = model.load_state_dict({"0.weight": network(5)[0].weight, "more": torch.zeros(1)}, strict=False)
    assert result.unexpected_keys == ["more"] and "0.bias" in result.missing_keys
    raises(ValueError, "0.weight: a tensor of shape (2, 2)", lambda: model.load_state_dict({"0.weight": torch.zeros(2, 2)}))
    mesh = model[0].weight.device_mesh
    everywhere = {name: DTensor.from_local(value, mesh, (Replicate(),), run_check=False)
                  for name, value in network(6).state_dict().items()}
    model.load_state_dict(everywhere)  # each rank takes its part
    assert_same(model, network(6))
    columns = DTensor.from_local(torch.zeros(37, 7 - dist.get_rank()), mesh, (Shard(1),), run_check=False, shape=torch.Size((37, 13)),
                                 stride=(13, 1))
    raises(ValueError, "redistribute it", lambda: model.load_state_dict({"0.weight": columns}))
    fewer = DTensor.from_local(torch.zeros(1, 13), mesh, (Replicate(),), run_check=False)
    raises(ValueError, "redistribute it", lambda: model.load_state_dict({"0.weight": fewer}))


@ranks(2)
def hsdp_checkpoints_of_both_libraries(folder):
    model = sharded(network())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    train(model, optimizer)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    shardwright.torch.save(state, folder / "ours")
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder / "theirs")
    fresh = sharded(network(7))
    target = {"model": fresh.state_dict()}
    shardwright.torch.load(folder / "ours", into=target)
    assert_same(fresh, trained_alone(lambda model: torch.optim.AdamW(model.parameters(), lr=0.01)))
    again = sharded(network(8))
    dcp.load({"model": again.state_dict()}, checkpoint_id=folder / "theirs")
    for one, two in zip(fresh.parameters(), again.parameters(), strict=True):
        assert torch.equal(one.to_local(), two.to_local())
    assert torch.equal(fresh(batch(0, 0)), again(batch(0, 0)))


@ranks(2)
def hsdp_meta_parameters_are_given_memory_first(folder):
    with torch.device("meta"):
        model = network()
    sharded(model)
    raises(RuntimeError, "is on the meta device", lambda: model(batch(0, 0)))
    with torch.device("meta"):
        model = network()
    sharded(model)
    model.to_empty(device="cpu")
    model.load_state_dict(network(5).state_dict())
    assert torch.equal(model(batch(0, 0)), network(5)(batch(0, 0)))


# ---- what is refused, and failures ----

@ranks(2)
def hsdp_what_is_wrong_is_named_t35(folder):
    model = sharded(network())
    raises(ValueError, "with this HSDPLinear before", lambda: fully_shard(model[0]))
    raises(ValueError, "sharded already", lambda: fully_shard(_inner_of_sharded()))
    raises(ValueError, "ModuleList has no forward", lambda: fully_shard(nn.ModuleList([nn.Linear(2, 2)])))
    raises(ValueError, "a module or a list of modules", lambda: fully_shard("model"))
    raises(ValueError, "has no dimension", lambda: fully_shard(_with(torch.tensor(1.0))))
    raises(NotImplementedError, "is not contiguous", lambda: fully_shard(_with(torch.zeros(3, 2).t())))
    raises(ValueError, "does not divide the 2 ranks", lambda: fully_shard(nn.Linear(2, 2), reshard_after_forward=3))
    raises(ValueError, "must be a bool", lambda: fully_shard(nn.Linear(2, 2), reshard_after_forward=0.5))
    raises(ValueError, "must be None, a Shard, or one", lambda: fully_shard(nn.Linear(2, 2), shard_placement_fn=lambda _: Replicate()))
    raises(ValueError, "which has 2 dimensions", lambda: fully_shard(nn.Linear(2, 2, bias=False), shard_placement_fn=lambda _: Shard(5)))
    raises(ValueError, "not a MixedPrecisionPolicy", lambda: fully_shard(nn.Linear(2, 2), mp_policy="bf16"))
    raises(ValueError, "not an OffloadPolicy", lambda: fully_shard(nn.Linear(2, 2), offload_policy="cpu"))
    raises(NotImplementedError, "runs on the CPU", lambda: fully_shard(nn.Linear(2, 2), device="xpu"))
    mesh = init_device_mesh("cpu", (1, 1, 2), mesh_dim_names=("a", "b", "c"))
    raises(ValueError, "1 or 2 dimensions", lambda: fully_shard(nn.Linear(2, 2), mesh=mesh))
    raises(ValueError, "True or False", lambda: model.set_requires_gradient_sync(1))
    raises(ValueError, "'avg' or 'sum'", lambda: model.set_reduce_op_type("max"))
    raises(ValueError, "above 0", lambda: model.set_gradient_divide_factor(0))
    raises(ValueError, "a list of modules", lambda: model.set_modules_to_forward_prefetch(model[0]))
    raises(RuntimeError, "optimizer.zero_grad()", model.zero_grads)
    raises(AssertionError, "not copied", lambda: copy.deepcopy(model))
    alone = sharded(network())
    alone[0](batch(0, 0))
    raises(RuntimeError, "run the outermost one first", lambda: alone(batch(0, 0)))


def _inner_of_sharded():
    outer = nn.Sequential(nn.Linear(2, 2))
    fully_shard(outer)
    return outer[0]


def _with(value):
    module = nn.Module()
    module.value = nn.Parameter(value)
    return module


@ranks(2)
def hsdp_a_rank_that_raises_tells_the_others_t36(folder):
    class Breaks(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.breaks = network(), False

        def forward(self, x):
            for number, layer in enumerate(self.layers):
                if self.breaks and number == 2:
                    raise KeyError("no such token")
                x = layer(x)
            return x

    def shard(model):
        for layer in model.layers:
            if isinstance(layer, nn.Linear):
                fully_shard(layer)
        return fully_shard(model)

    model = shard(Breaks())
    optimizer = sgd(model)
    train(model, optimizer)
    model.breaks = dist.get_rank() == 1
    kind = KeyError if model.breaks else shardwright.ShardwrightError
    raises(kind, "no such token", lambda: loss_of(model, batch(0, 0)).backward())
    model.breaks = False
    model.reset_iter_state()
    assert all(each.grad is None for each in model.parameters())
    for step in range(STEPS, 2 * STEPS):
        loss_of(model, batch(step, dist.get_rank())).backward()
        optimizer.step()
        optimizer.zero_grad()
    expected = trained_alone(steps=2 * STEPS).state_dict()
    for name, value in model.state_dict().items():
        assert torch.equal(value.full_tensor(), expected[name.removeprefix("layers.")]), name
