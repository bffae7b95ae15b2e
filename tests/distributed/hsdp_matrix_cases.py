# SPDX-License-Identifier: Apache-2.0
"""Cases of shardwright.torch.hsdp that combine options: dtypes, accumulation, factors, state dicts; against one process that casts
and adds as they say, and against torch's fully_shard."""
import shardwright
import torch
import torch.distributed as dist
from cases import raised, ranks
from hsdp_cases import STEPS, add, batch, loss_of, network, raises, sgd, sharded, train
from shardwright.torch.hsdp import (CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard, get_model_state_dict,
                                    set_model_state_dict)
from shardwright.torch.hsdp._state import state_of as module_state_of
from torch import nn
from torch.distributed import fsdp
from torch.distributed.checkpoint.state_dict import StateDictOptions
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.utils.checkpoint import checkpoint


def grads_of(model, dtype, rank, numbers, reduce_dtype):
    """Of micro-batches of one rank, by a model of that dtype, added in the dtype of the sums."""
    own = None
    for number in numbers:
        made = torch.autograd.grad(loss_of(model, batch(0, rank, number).to(dtype)), list(model.parameters()))
        own = add(own, [each.to(reduce_dtype) for each in made])
    return own


def mean_alone(dtype, numbers=(0,), reduce_dtype=torch.float32):
    """Gradients of one process that computes in a dtype and adds in another, ranks in their order."""
    model = network().to(dtype)
    total = None
    for rank in range(dist.get_world_size()):
        total = add(total, grads_of(model, dtype, rank, numbers, reduce_dtype))
    return [(each * (1.0 / dist.get_world_size())).float() for each in total]


def assert_gradients(params, expected):
    for number, (param, grad) in enumerate(zip(params, expected, strict=True)):
        assert torch.equal(param.grad.full_tensor(), grad), number


# ---- dtypes ----

@ranks(2)
def hsdp_computes_in_half_and_adds_in_single_t9(folder):
    for dtype in (torch.float16, torch.bfloat16):
        for reduce_dtype in (torch.float32, None):  # None is the dtype of the parameters, which are float32
            model = sharded(network(), mp_policy=MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=reduce_dtype))
            out = model(batch(0, dist.get_rank()))
            assert out.dtype == dtype
            out.pow(2).sum().backward()
            assert_gradients(model.parameters(), mean_alone(dtype))


@ranks(2)
def hsdp_inputs_are_not_cast_where_that_is_off_t9(folder):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, cast_forward_inputs=False)
    seen = []

    class Looks(nn.Linear):
        def forward(self, x):
            seen.append((x.dtype, self.weight.dtype))
            return super().forward(x.to(self.weight.dtype))

    for casts, dtype in ((False, torch.float32), (True, torch.bfloat16)):
        layer = fully_shard(Looks(13, 5), mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, cast_forward_inputs=casts))
        layer(batch(0, 0))
        assert seen.pop() == (dtype, torch.bfloat16)
    raises(RuntimeError, "dtype", lambda: fully_shard(nn.Linear(13, 5), mp_policy=policy)(batch(0, 0)))


@ranks(2)
def hsdp_half_gradients_are_accumulated_in_single_t10(folder):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for reshards in (True, False):
        model = sharded(network(), mp_policy=policy)
        params = list(model.parameters())  # of the optimizer: modules may keep whole ones
        model.set_reshard_after_backward(reshards)
        for number in range(3):
            model.set_requires_gradient_sync(number == 2)
            loss_of(model, batch(0, dist.get_rank(), number)).backward()
        assert_gradients(params, mean_alone(torch.bfloat16, range(3)))
    each_time = sharded(network(), mp_policy=policy)
    total = None
    for number in range(3):
        loss_of(each_time, batch(0, dist.get_rank(), number)).backward()
        total = add(total, mean_alone(torch.bfloat16, [number]))
    assert_gradients(each_time.parameters(), total)


@ranks(2)
def hsdp_places_of_shards_change_nothing_t13(folder):
    policies = [None, OffloadPolicy(), CPUOffloadPolicy(pin_memory=False), CPUOffloadPolicy(pin_memory=True)]
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for mp_policy in (None, half):
        trained = []
        for policy in policies:
            model = sharded(network(), offload_policy=policy, mp_policy=mp_policy)
            train(model, sgd(model))
            loss_of(model, batch(9, dist.get_rank())).backward()
            trained.append([tensor.to_local().clone() for each in model.parameters() for tensor in (each.data, each.grad)])
        for other in trained[1:]:
            assert all(torch.equal(a, b) for a, b in zip(trained[0], other, strict=True))


# ---- activations, unused parameters, factors ----

@ranks(2)
def hsdp_activations_are_computed_again_by_either_way_t18(folder):
    class Again(nn.Module):
        def __init__(self, reentrant):
            super().__init__()
            self.layers, self.reentrant, self.seen = network(), reentrant, []

        def forward(self, x):
            for layer in self.layers:
                x = checkpoint(self.run, layer, x, use_reentrant=self.reentrant)
            return x

        def run(self, layer, x):
            out = layer(x)
            self.seen.append(out.dtype)
            return out

    for reentrant in (False, True):
        model = Again(reentrant)
        for layer in model.layers:
            if isinstance(layer, nn.Linear):
                fully_shard(layer, mp_policy=MixedPrecisionPolicy(output_dtype=torch.float64))
            else:
                layer.forward = lambda x, run=layer.forward: run(x.float())
        fully_shard(model, mp_policy=MixedPrecisionPolicy(output_dtype=torch.float64))
        optimizer = sgd(model)
        alone = network()
        alone_optimizer = sgd(alone)
        for step in range(STEPS):
            loss_of(model, batch(step, dist.get_rank()).requires_grad_()).backward()
            optimizer.step()
            optimizer.zero_grad()
            total = None
            for rank in range(2):
                loss = alone(batch(step, rank)).double().pow(2).sum()
                total = add(total, torch.autograd.grad(loss, list(alone.parameters())))
            for param, grad in zip(alone.parameters(), total, strict=True):
                param.grad = grad * 0.5
            alone_optimizer.step()
        linear, between = torch.float64, torch.float32
        assert model.seen[:5] == [linear, between, linear, between, linear]
        assert sorted(map(str, model.seen[5:10])) == sorted(map(str, model.seen[:5])), "both forwards have the same dtypes"
        for (name, found), wanted in zip(model.named_parameters(), alone.parameters(), strict=True):
            assert torch.equal(found.full_tensor(), wanted), (reentrant, name)


class Chooses(nn.Module):
    """Of its layers those take part that are named."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.used, self.unused = nn.Linear(13, 5), nn.Linear(13, 5)

    def forward(self, x, *names):
        return sum(getattr(self, name)(x) for name in names)


@ranks(2)
def hsdp_unused_parameters_that_are_left_out_t19(folder):
    model, alone = Chooses(), Chooses()
    fully_shard(model, timeout=1800.0)
    model.set_reduce_scatter_unused_params(False)
    model(batch(0, dist.get_rank()), "used").pow(2).sum().backward()
    total = None
    for rank in range(2):
        total = add(total, torch.autograd.grad(alone(batch(0, rank), "used").pow(2).sum(), list(alone.used.parameters())))
    for param, grad in zip(model.used.parameters(), total, strict=True):
        assert torch.equal(param.grad.full_tensor(), grad * 0.5)
    assert all(each.grad is None for each in model.unused.parameters())
    # Where one rank alone has a gradient the ranks disagree, and all hear of it.
    names = ("used",) if dist.get_rank() == 0 else ("used", "unused")
    error = raised(model(batch(0, 0), *names).sum().backward)
    assert isinstance(error, shardwright.ShardwrightError), error
    model.reset_iter_state()
    model.set_reduce_scatter_unused_params(True)
    model(batch(0, 0), *names).sum().backward()
    expected = torch.autograd.grad(alone(batch(0, 0), "unused").sum(), alone.unused.weight)[0] * 0.5
    assert torch.equal(model.unused.weight.grad.full_tensor(), expected)


@ranks(2)
def hsdp_divides_by_every_factor_t20(folder):
    total = None
    for rank in range(dist.get_world_size()):
        total = add(total, grads_of(network(), torch.float32, rank, [0], torch.float32))
    for forced in (False, True):
        for factor in (1, dist.get_world_size(), 3, 7):
            model = sharded(network())
            for each in model.modules():
                if hasattr(each, "set_gradient_divide_factor"):
                    each.set_gradient_divide_factor(float(factor))
                    each.set_force_sum_reduction_for_comms(forced)
            loss_of(model, batch(0, dist.get_rank())).backward()
            for param, grad in zip(model.parameters(), total, strict=True):
                found = param.grad.full_tensor()
                if factor in (1, 2, 4):
                    assert torch.equal(found, grad / factor), factor
                assert torch.allclose(found, grad / factor, rtol=1e-6, atol=0), factor
    model = sharded(network())
    model.set_reduce_op_type("sum", recurse=True)
    loss_of(model, batch(0, dist.get_rank())).backward()
    assert_gradients(model.parameters(), total)
    raises(ValueError, "must be above 0", lambda: model.set_gradient_divide_factor(0.0))


# ---- state dicts ----

def _partly_frozen(seed):
    model = network(seed)
    model.register_buffer("steps", torch.tensor([3.0, seed]))
    model[2].weight.requires_grad_(False)
    return model


@ranks(2, 4)
def hsdp_state_dicts_are_got_in_every_form_t25(folder):
    model, alone = sharded(_partly_frozen(1)), _partly_frozen(1)
    first = dist.get_rank() == 0
    for frozen in (False, True):
        wanted = {name: value for name, value in alone.state_dict().items() if not (frozen and name == "2.weight")}
        for full in (False, True):
            for offload in (False, True):
                options = StateDictOptions(full_state_dict=full, cpu_offload=offload, ignore_frozen_params=frozen)
                found = get_model_state_dict(model, options=options)
                if full and offload and not first:
                    assert found == {}
                    continue
                assert list(found) == list(wanted)
                for name, value in found.items():
                    assert value.device.type == "cpu"
                    assert isinstance(value, DTensor) == (not full and name != "steps"), name
                    assert torch.equal(value.to_local() if isinstance(value, DTensor) else value, _part(wanted[name], value)), name
    raises(ValueError, "full_state_dict", lambda: get_model_state_dict(
        model, options=StateDictOptions(broadcast_from_rank0=True)))


def _part(whole, value):
    """What a rank has of a whole tensor, by torch's own rule of rows."""
    if not isinstance(value, DTensor):
        return whole
    parts = whole.chunk(dist.get_world_size())
    return parts[dist.get_rank()] if dist.get_rank() < len(parts) else whole[:0]


@ranks(2, 4)
def hsdp_state_dicts_are_set_in_every_form_t25(folder):
    first = dist.get_rank() == 0
    for full in (False, True):
        for offload in (False, True):
            options = StateDictOptions(full_state_dict=full, cpu_offload=offload, broadcast_from_rank0=full and offload)
            given = get_model_state_dict(sharded(_partly_frozen(2)), options=options)
            model = sharded(_partly_frozen(1))
            model(batch(0, 0))  # with parameters that are whole
            set_model_state_dict(model, given, options=options)
            assert first or bool(given) == (not (full and offload))
            for name, value in _partly_frozen(2).state_dict().items():
                found = model.state_dict()[name]
                assert torch.equal(found.full_tensor() if isinstance(found, DTensor) else found, value), (full, offload, name)
            assert torch.equal(model(batch(0, 0)), _partly_frozen(2)(batch(0, 0)))
            assert not model[2].weight.requires_grad
    raises(ValueError, "full_state_dict", lambda: set_model_state_dict(
        model, {}, options=StateDictOptions(broadcast_from_rank0=True)))
    fewer = get_model_state_dict(sharded(_partly_frozen(3)), options=StateDictOptions(ignore_frozen_params=True))
    raises(RuntimeError, "2.weight", lambda: set_model_state_dict(model, fewer))
    result = set_model_state_dict(model, fewer, options=StateDictOptions(strict=False))
    assert result.missing_keys == ["2.weight"] and result.unexpected_keys == []
    assert torch.equal(model[2].weight.full_tensor(), _partly_frozen(2)[2].weight)
    assert torch.equal(model[0].weight.full_tensor(), _partly_frozen(3)[0].weight)


# ---- torch ----

FLAVOURS = {"each": lambda model, is_last: None,
            "partial": lambda model, is_last: model.set_requires_all_reduce(is_last),
            "local": lambda model, is_last: model.set_requires_gradient_sync(is_last),
            "kept": lambda model, is_last: _keep_until(model, is_last)}


def _keep_until(model, is_last):
    model.set_requires_gradient_sync(is_last)
    model.set_reshard_after_backward(is_last)


# What a flavour turns off until its last micro-batch, and where gradients are until then.
TURNED_OFF = {"each": (), "partial": ("requires_all_reduce",), "local": ("requires_gradient_sync",),
              "kept": ("requires_gradient_sync", "reshard_after_backward")}
STATES = {"each": "none", "partial": "partial", "local": "local", "kept": "local"}


def assert_flavour(model, name, is_last, has_replicas):
    """Each unit of the library is set as the flavour says, and its backward was one of it: sums alone would not tell, where each
    micro-batch is reduced by itself."""
    for unit in units_below(model):
        found = unit.settings()
        for setting in ("requires_all_reduce", "requires_gradient_sync", "reshard_after_backward"):
            assert getattr(found, setting) == (is_last or setting not in TURNED_OFF[name]), (name, setting, unit.name)
        if unit.param_count > 0 and not is_last:
            grads = STATES[name] if name != "partial" or has_replicas else "none"
            assert (unit.grad_state, unit.state) == (grads, "unsharded" if name == "kept" else "sharded"), (name, unit.name)


def units_below(model):
    return [unit for core in module_state_of(model).context.cores for unit in core.units]


def _meshes():
    """Of shards alone, and of replicas of them."""
    world = dist.get_world_size()
    yield init_device_mesh("cpu", (world,))
    if world == 4:
        yield init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))


@ranks(2, 4)
def hsdp_accumulates_as_torch_does_t34(folder):
    for mesh in _meshes():
        for name, before in FLAVOURS.items():
            ours = sharded(network(), mesh=mesh)
            theirs = sharded(network(), fsdp.fully_shard, mesh=mesh)
            for number in range(3):
                for model in (ours, theirs):
                    before(model, number == 2)
                    loss_of(model, batch(0, dist.get_rank(), number)).backward()
                assert_flavour(ours, name, number == 2, mesh.ndim == 2)
            for (param, found), wanted in zip(ours.named_parameters(), theirs.parameters(), strict=True):
                a, b = found.grad, wanted.grad
                assert (a.shape, a.placements) == (b.shape, b.placements)
                # Sums of terms that cancel differ by the rounding of the terms.
                scale = b.full_tensor().abs().max().item()
                assert torch.allclose(a.to_local(), b.to_local(), rtol=1e-6, atol=1e-6 * scale), (tuple(mesh.shape), name, param)


@ranks(2)
def hsdp_what_methods_set_is_read_back_of_units(folder):
    """Of the options and methods of fully_shard, on all units of a model, before the first forward and after it."""
    methods = {"requires_gradient_sync": ("set_requires_gradient_sync", False), "requires_all_reduce": ("set_requires_all_reduce", False),
               "reshard_after_forward": ("set_reshard_after_forward", False), "reshard_after_backward": ("set_reshard_after_backward", False),
               "unshard_in_backward": ("set_unshard_in_backward", False), "unused_policy": ("set_reduce_scatter_unused_params", False),
               "divide_factor": ("set_gradient_divide_factor", 3.0), "reduce_op": ("set_reduce_op_type", "sum")}
    seen = {"unused_policy": "skip"}
    for runs_first in (False, True):
        model = sharded(network())
        if runs_first:
            loss_of(model, batch(0, dist.get_rank())).backward()
        for method, value in methods.values():
            for each in model.modules():
                if hasattr(each, method):
                    getattr(each, method)(value)
        model.set_reduce_scatter_max_input_buffers(3)
        model(batch(0, dist.get_rank()))
        for unit in units_below(model):
            for name, (_, value) in methods.items():
                assert getattr(unit.settings(), name) == seen.get(name, value), (runs_first, name)
        assert [core.settings().max_inflight_reduce for core in module_state_of(model).context.cores] == [3]
    for depth in (0, 1, 4):
        model = sharded(network(), prefetch_depth=depth)
        model(batch(0, 0))
        assert [core.settings().prefetch_depth for core in module_state_of(model).context.cores] == [depth]


# ---- what is gathered ahead ----

def states_at_backward(model, optimizer):
    """Of each layer, in which state its backward found it, in training after a first iteration."""
    train(model, optimizer)
    seen = []
    for unit in units_below(model):
        def looked_at(unit=unit, call=unit.pre_backward):
            seen.append((unit.name, unit.state))
            call()
        unit.pre_backward = looked_at
    train(model, optimizer)
    return [row for row in seen if row[0] in ("0", "2", "4")]


@ranks(2)
def hsdp_backward_gathers_ahead_inside_of_a_root(folder):
    """The backward of the root begins beside that of its last layer, and must not end what the layers foretell. What the last layer
    would gather at once it keeps, unless the host says that it reshards."""
    for policy, last in ((None, "unsharded"), (True, "sharded")):
        model = sharded(network(), reshard_after_forward=policy)
        found = states_at_backward(model, sgd(model))
        assert found == [("4", last), ("2", "gathering"), ("0", "gathering")] * STEPS, (policy, found)
    apart = sharded(network(), comm_fusion=False)
    assert states_at_backward(apart, sgd(apart))[:2] == [("4", "unsharded")] * 2
    told = sharded(network())
    told.set_reshard_after_forward(True)
    assert states_at_backward(told, sgd(told))[0] == ("4", "sharded")


@ranks(2)
def hsdp_layers_kept_for_a_backward_that_does_not_come_see_changes(folder):
    model, alone = sharded(network()), network()
    x = batch(0, 0)
    loss_of(model, batch(0, dist.get_rank())).backward()  # tells which layer runs last
    model.zero_grad()
    model(x)
    assert [unit.state for unit in units_below(model)][-1] == "unsharded"
    assert all(isinstance(each, DTensor) for each in model.parameters()), "an optimizer that is made now gets shards"
    model[4].bias.detach().to_local().numpy()[:] = 7.0  # nothing that torch counts
    alone[4].bias.data.fill_(7.0)
    assert torch.equal(model(x), alone(x))
    first, second = loss_of(model, x), loss_of(model, x)  # the second forward gathers anew
    (first + second).backward()
    expected = torch.autograd.grad(2 * loss_of(alone, x), list(alone.parameters()))
    for param, grad in zip(model.parameters(), expected, strict=True):
        assert torch.allclose(param.grad.full_tensor(), grad, rtol=1e-6)
