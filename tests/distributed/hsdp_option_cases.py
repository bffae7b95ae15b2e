# SPDX-License-Identifier: Apache-2.0
"""Cases of the options of shardwright.torch.hsdp.fully_shard: which units are gathered ahead, which parameters are whole on each
rank, parameters of several names, lists of modules, models that share communicators."""
import copy
import warnings

import torch
import torch.distributed as dist
from cases import ranks
from hsdp_cases import STEPS, add, assert_same, batch, loss_of, network, raises, sgd, sharded, train, trained_alone
from shardwright.torch import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard, share_comm_ctx
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop


class Tied(nn.Module):
    """Its first and last layer have one weight."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(13, 13), nn.Linear(13, 13)
        self.last.weight = self.first.weight

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


@ranks(2)
def hsdp_prefetches_change_nothing_t7(folder):
    expected = trained_alone()
    for depth in (0, 1, 2, 9):
        model = sharded(network(), prefetch_depth=depth)
        train(model, sgd(model))
        assert_same(model, expected)
    listed = sharded(network())
    listed[0].set_modules_to_forward_prefetch([listed[2], listed[4]])
    listed[4].set_modules_to_backward_prefetch([listed[0]])  # not the one that is next
    train(listed, sgd(listed))
    assert_same(listed, expected)
    other = sharded(network())
    other[0].set_modules_to_forward_prefetch([fully_shard(nn.Linear(2, 2))])
    raises(ValueError, "0 is to gather Linear ahead, which is not a part of the same model", lambda: other(batch(0, 0)))
    other[0].set_modules_to_forward_prefetch([other[2]])
    other(batch(0, 0))
    raises(ValueError, "not a part of the same model", lambda: other[0].set_modules_to_backward_prefetch([listed[2]]))


@ranks(2)
def hsdp_prefetches_before_a_step_are_dropped_t7(folder):
    model = sharded(network())
    optimizer = sgd(model)
    train(model, optimizer)
    expected = trained_alone(steps=5)
    loss_of(model, batch(4, dist.get_rank())).backward()
    handle = model[0].unshard(async_op=True)  # of values that the step replaces
    optimizer.step()
    optimizer.zero_grad()
    handle.wait()
    seen = model(batch(5, 0))
    assert torch.equal(seen, expected(batch(5, 0)))


@ranks(2)
def hsdp_shared_parameters_t15(folder):
    alone = trained_alone(model=Tied())
    for whole in (lambda: fully_shard(Tied()), lambda: _with_list(Tied())):
        model = whole()
        train(model, sgd(model))
        assert model.first.weight is model.last.weight
        assert_same(model, alone)
    model = Tied()
    fully_shard(model.first)
    raises(ValueError, "parameter Linear.weight is also Linear.weight", lambda: fully_shard(model.last))
    model = Tied()
    fully_shard(model.first)
    raises(ValueError, "parameter Tied.last.weight is also Linear.weight", lambda: fully_shard(model))
    raises(ValueError, "fully_shard([first, second])", lambda: fully_shard(model))


def _with_list(model):
    fully_shard([model.first, model.last])
    return fully_shard(model)


@ranks(2)
def hsdp_lists_of_modules_are_one_unit(folder):
    model = network()
    alone = trained_alone(model=copy.deepcopy(model))
    fully_shard([model[0], model[4]])  # weight and bias of both
    fully_shard(model)
    train(model, sgd(model))
    assert_same(model, alone)
    listed = network()
    fully_shard([listed[0], listed[2], listed[4]])  # and nothing around them
    train(listed, sgd(listed))
    assert_same(listed, alone)


@ranks(2)
def hsdp_small_parameters_stay_whole(folder):
    model = network()
    fully_shard(model, threshold=4 * 37 + 1)
    assert model[0].bias.placements == (Replicate(),) and model[0].weight.placements == (Shard(0),)
    train(model, sgd(model))
    assert_same(model, trained_alone())
    for name in ("threshold", "prefetch_depth"):
        for value in (-1, True, 0.5):
            raises(ValueError, f"{name} is {value!r}; it must be a number from 0",
                   lambda name=name, value=value: fully_shard(nn.Linear(2, 2), **{name: value}))


@ranks(2)
def hsdp_secondary_shards_of_one_rank_are_warned_of(folder):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fully_shard(nn.Linear(2, 2), reshard_after_forward=1)
    assert [str(each.message) for each in seen] == ["reshard_after_forward=1 keeps whole parameters on each rank; it is False"]


@ranks(2)
def hsdp_models_share_communicators(folder):
    mesh = init_device_mesh("cpu", (2,))
    first, second = sharded(network(), mesh=mesh), sharded(network(1), mesh=mesh)
    share_comm_ctx([first, second])
    raises(ValueError, "found Linear", lambda: share_comm_ctx([first, nn.Linear(2, 2)]))
    both = init_device_mesh("cpu", (1, 2), mesh_dim_names=("replicas", "shards"))
    raises(ValueError, "they share nothing", lambda: share_comm_ctx([first, fully_shard(nn.Linear(2, 2), mesh=both)]))


class PartlyUsed(nn.Module):
    """One of its layers takes no part."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.used, self.unused = nn.Linear(13, 5), nn.Linear(13, 5)

    def forward(self, x):
        return self.used(x)


@ranks(2)
def hsdp_meshes_of_one_shard_t3_t19(folder):
    both = init_device_mesh("cpu", (2, 1), mesh_dim_names=("replicas", "shards"))
    model = PartlyUsed()
    fully_shard(model, mesh=both)
    loss_of(model, batch(0, dist.get_rank())).backward()
    alone = PartlyUsed()
    first, second = (torch.autograd.grad(loss_of(alone, batch(0, rank)), alone.used.weight)[0] for rank in range(2))
    assert torch.equal(model.used.weight.grad.full_tensor(), (first + second) * 0.5)
    assert not model.unused.weight.grad.full_tensor().any()
    single = PartlyUsed()
    fully_shard(single, mesh=both["shards"])  # of this rank alone
    loss_of(single, batch(0, dist.get_rank())).backward()
    assert isinstance(single.used.weight, DTensor)
    assert torch.equal(single.used.weight.grad.to_local(), (first, second)[dist.get_rank()])


@ranks(2)
def hsdp_one_rank_alone_uses_a_parameter_t19(folder):
    class Chooses(PartlyUsed):
        def forward(self, x):
            return self.used(x) if dist.get_rank() == 0 else self.unused(x)

    model, alone = Chooses(), PartlyUsed()
    fully_shard(model)
    loss_of(model, batch(0, dist.get_rank())).backward()
    for rank, name in enumerate(("used", "unused")):
        layer = getattr(alone, name)
        expected = torch.autograd.grad(layer(batch(0, rank)).pow(2).sum(), layer.weight)[0] * 0.5
        assert torch.equal(getattr(model, name).weight.grad.full_tensor(), expected), name


@ranks(2)
def hsdp_recomputed_outputs_are_cast_t18(folder):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, output_dtype=torch.float32)
    for reentrant, stops_early in ((False, True), (False, False), (True, False)):
        seen = []
        layer = fully_shard(nn.Linear(13, 5), mp_policy=policy)

        def run(x, layer=layer, seen=seen):
            out = layer(x)
            seen.append(out.dtype)
            return out

        with set_checkpoint_early_stop(stops_early):
            checkpoint(run, batch(0, 0).requires_grad_(), use_reentrant=reentrant).sum().backward()
        assert seen == [torch.float32] * (1 if stops_early else 2), "torch stops computing again where it has what it needs"
        assert layer.weight.grad is not None


@ranks(2)
def hsdp_models_of_two_dtypes_t26(folder):
    first, second = sharded(network(1)), sharded(network(2).double())
    for _ in range(2):
        losses = loss_of(first, batch(0, dist.get_rank())), loss_of(second, batch(0, dist.get_rank()).double())
        losses[1].backward()
        losses[0].backward()
        assert first[0].weight.grad.dtype == torch.float32 and second[0].weight.grad.dtype == torch.float64
    assert_same(first, network(1))


@ranks(2)
def hsdp_offload_on_a_cpu_changes_nothing_t13(folder):
    model = sharded(network(), offload_policy=CPUOffloadPolicy())
    train(model, sgd(model), 2, lambda model, is_last: model.set_requires_gradient_sync(is_last))
    assert_same(model, trained_alone(micro_batches=2))


@ranks(2)
def hsdp_sums_in_another_dtype_are_accumulated_t10(folder):
    policy = MixedPrecisionPolicy(reduce_dtype=torch.float64)
    model, alone = sharded(network(), mp_policy=policy), network()
    for number in range(2):
        model.set_requires_gradient_sync(number == 1)
        loss_of(model, batch(0, dist.get_rank(), number)).backward()
    total = None
    for rank in range(2):
        for number in range(2):
            made = torch.autograd.grad(loss_of(alone, batch(0, rank, number)), list(alone.parameters()))
            total = add(total, [each.double() for each in made])
    for param, grad in zip(model.parameters(), total, strict=True):
        assert torch.allclose(param.grad.full_tensor(), (grad * 0.5).float(), rtol=1e-6, atol=1e-7)
        assert param.grad.dtype == torch.float32


@ranks(2)
def hsdp_gradients_come_with_the_last_backward_t12(folder):
    model = sharded(network())
    train(model, sgd(model), 3, lambda model, is_last: model.set_is_last_backward(is_last))
    total = trained_alone(micro_batches=3)
    for name, value in total.state_dict().items():
        assert torch.allclose(model.state_dict()[name].full_tensor(), value, rtol=1e-5, atol=1e-6), name
    model.set_is_last_backward(False)
    loss_of(model, batch(0, dist.get_rank())).backward()
    assert model[0].weight.grad is None
    model.set_is_last_backward(True)
    loss_of(model, batch(0, dist.get_rank())).backward()
    assert model[0].weight.grad is not None


@ranks(2)
def hsdp_gradients_travel_over_groups_of_their_own(folder):
    model = sharded(network())
    model.set_separate_reduce_scatter_group()
    model[0].set_reduce_scatter_max_input_buffers(2)  # of an inner module, which does not become a root
    train(model, sgd(model))
    assert_same(model, trained_alone())
    raises(RuntimeError, "before it", model.set_separate_reduce_scatter_group)
    raises(ValueError, "True or False", lambda: sharded(network()).set_separate_reduce_scatter_group(2))


@ranks(4)
def hsdp_hooks_sum_over_replicas_that_the_mesh_does_not_know(folder):
    both = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards"))
    model = sharded(network(), mesh=both["shards"])
    sizes = []

    def mean_over_replicas(flat):
        sizes.append(flat.numel())
        dist.all_reduce(flat, group=both.get_group("replicas"))
        flat.mul_(0.5)

    for each in (model, model[0], model[2], model[4]):
        each.set_all_reduce_hook(mean_over_replicas)
    train(model, sgd(model))
    assert_same(model, trained_alone(shards=2))
    assert sum(sizes) == STEPS * sum(each.to_local().numel() for each in model.parameters())
    whole = fully_shard(nn.Linear(2, 2), mesh=both)
    raises(ValueError, "has replicas", lambda: whole.set_all_reduce_hook(mean_over_replicas))
    raises(ValueError, "no streams", lambda: model.set_all_reduce_hook(mean_over_replicas, stream=object()))


@ranks(2)
def hsdp_settings_have_the_names_of_both_libraries(folder):
    model = sharded(network())
    train(model, sgd(model), 2, lambda model, is_last: model.set_requires_gradient_sync(requires_gradient_sync=is_last))
    assert_same(model, trained_alone(micro_batches=2))
    model.set_requires_gradient_sync(requires_grad_sync=True)
    for call in (model.set_requires_gradient_sync, lambda: model.set_requires_gradient_sync(True, requires_gradient_sync=True)):
        raises(ValueError, "times; it must be once", call)


@ranks(2)
def hsdp_parameters_that_are_replaced_are_taken_t22(folder):
    for runs_before in (False, True):
        model, other = sharded(network(1)), network(2)
        if runs_before:
            loss_of(model, batch(0, dist.get_rank())).backward()
        model.load_state_dict(sharded(network(2)).state_dict(), assign=True)
        assert torch.equal(model(batch(0, 0)), other(batch(0, 0)))
        train(model, sgd(model))
        assert_same(model, trained_alone(model=other))
    model = sharded(network()).double()  # before the first forward
    seen = model(batch(0, 0).double())
    assert torch.equal(seen, network().double()(batch(0, 0).double()))


@ranks(2)
def hsdp_parameters_of_another_kind_are_refused(folder):
    model = sharded(network())
    model(batch(0, 0))
    model.reshard()
    raises(ValueError, "0.weight has become torch.float64 and was torch.float32", lambda: model.double()(batch(0, 0)))
    model = sharded(network())
    model[0].weight = nn.Parameter(torch.zeros(37, 13))
    raises(ValueError, "0.weight was replaced by Parameter; it must be a DTensor of shape (37, 13)", lambda: model(batch(0, 0)))
