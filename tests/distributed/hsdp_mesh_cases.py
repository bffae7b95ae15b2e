# SPDX-License-Identifier: Apache-2.0
"""Cases of fully_shard whose parameters are not all alike: computed with in several dtypes, gathered one by one, on meshes of other
kinds, and of lists of modules."""
import torch
import torch.distributed as dist
from cases import ranks
from hsdp_cases import assert_same, batch, loss_of, network, raises, sgd, sharded, train, trained_alone
from shardwright.torch import MixedPrecisionPolicy, fully_shard
from shardwright.torch.hsdp._state import state_of
from torch import nn
from torch.distributed import fsdp


def cores_of(model):
    """Units of the library behind a model that has run forward."""
    return state_of(model).context.hsdp.units


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
    layer.scale.requires_grad_(False)
    layer.set_requires_gradient_sync(False)
    loss_of(layer, batch(0, dist.get_rank())).backward()
    assert layer.weight.grad is None
    layer.set_requires_gradient_sync(True)
    loss_of(layer, batch(0, dist.get_rank())).backward()
    assert layer.weight.grad is not None and layer.last.grad is not None and layer.scale.grad is None


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
