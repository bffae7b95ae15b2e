# SPDX-License-Identifier: Apache-2.0
"""Cases of the options of shardwright.torch.hsdp.fully_shard: which units are gathered ahead, which parameters are whole on each
rank, parameters of several names, lists of modules, models that share communicators."""
import copy
import warnings

import torch
from cases import ranks
from hsdp_cases import assert_same, batch, loss_of, network, raises, sgd, sharded, train, trained_alone
from shardwright.torch import fully_shard, share_comm_ctx
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard


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
    loss_of(model, batch(4, torch.distributed.get_rank())).backward()
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
