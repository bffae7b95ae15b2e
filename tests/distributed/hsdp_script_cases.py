# SPDX-License-Identifier: Apache-2.0
"""Cases of what a script does around shardwright.torch.hsdp: values that are loaded or written between forwards, calls that
fail and are made again, hooks of torch."""
import dataclasses
import os
import signal
import sys
import threading

import shardwright
import shardwright.torch
import torch
import torch.distributed as dist
from cases import raised, ranks, store
from hsdp_cases import assert_same, batch, loss_of, network, raises, sgd, sharded, train, trained_alone
from shardwright.hsdp import _interrupts
from shardwright.torch import MixedPrecisionPolicy, fully_shard, hsdp_sync_stream, register_fsdp_forward_method
from torch import nn


class Around(nn.Module):
    """A plain module around a model."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)


@ranks(2)
def hsdp_loads_are_seen_whatever_runs_next(folder):
    model, other = sharded(network(1)), network(2)
    loss_of(model, batch(0, dist.get_rank())).backward()
    model.load_state_dict(other.state_dict(), assign=True)
    model.unshard()
    assert torch.equal(model(batch(0, 0)), other(batch(0, 0)))
    model.load_state_dict(network(3).state_dict(), assign=True)
    with torch.no_grad():
        assert torch.equal(model[0](batch(0, 0)), network(3)[0](batch(0, 0)))
    assert_same(model, network(3))


@ranks(2)
def hsdp_loads_through_a_module_around_the_model(folder):
    around = Around(sharded(network(1), reshard_after_forward=False))
    with torch.no_grad():
        around(batch(0, 0))  # parameters stay whole
    values = {f"model.{name}": value for name, value in network(2).state_dict().items()}
    around.load_state_dict(values)
    assert torch.equal(around(batch(0, 0)), network(2)(batch(0, 0)))
    assert torch.equal(around.state_dict()["model.0.weight"].full_tensor(), values["model.0.weight"])
    raises(ValueError, "model.0.weight: a tensor of shape (2, 2)",
           lambda: around.load_state_dict({"model.0.weight": torch.zeros(2, 2)}, strict=False))


@ranks(2)
def hsdp_tied_parameters_are_loaded_whole(folder):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
            self.last.weight = self.first.weight

        def forward(self, x):
            return self.last(self.first(x))

    model, other = Tied(), Tied()
    fully_shard(model).load_state_dict(other.state_dict())
    x = torch.ones(2, 4)
    assert torch.equal(model(x), other(x))


@ranks(2)
def hsdp_a_backward_that_raised_must_be_reset(folder):
    model = sharded(network())
    handle = model[2].register_full_backward_pre_hook(lambda *_: 1 / 0)
    raises(ZeroDivisionError, "division", lambda: loss_of(model, batch(0, 0)).backward())
    handle.remove()
    raises(RuntimeError, "call reset_iter_state()", lambda: model(batch(0, 0)))
    model.reset_iter_state()
    assert all(each.grad is None for each in model.parameters())
    train(model, sgd(model))
    assert_same(model, trained_alone())


class Raises(torch.autograd.Function):
    """Its backward raises, if it is to."""

    @staticmethod
    def forward(ctx, x, error):
        ctx.error = error
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        if ctx.error is not None:
            raise ctx.error
        return grad, None


def _in_function(model, error):
    return model[2].register_forward_hook(lambda module, args, out: Raises.apply(out, error))


def _in_hook(model, error):
    return model[2].register_full_backward_pre_hook(lambda *_: (_ for _ in ()).throw(error))


def _in_torch(model, error):
    return model[2].register_forward_hook(lambda module, args, out: _changed_before_backward(out))


def _changed_before_backward(x):
    saved = x.exp()
    saved.add(1)  # its own backward needs no value
    out = saved * 1
    saved.add_(1)  # and that of exp needs this one
    return out


@ranks(2)
def hsdp_a_backward_that_raised_on_one_rank_tells_the_others_t36(folder):
    model = sharded(network(), timeout=1800.0)
    fails = dist.get_rank() == 1
    for breaks, text in ((_in_function, "KeyError: 'no such token'"), (_in_hook, "KeyError: 'no such token'"),
                         (_in_torch, "RuntimeError: one of the variables needed for gradient computation")):
        handle = breaks(model, KeyError("no such token")) if fails else None
        error = raised(loss_of(model, batch(0, 0)).backward)
        assert isinstance(error, shardwright.AbortedError) != fails, error
        assert text in f"{type(error).__name__}: {error}", error
        assert fails or f"rank 1: backward raised {text}" in str(error), error
        if handle is not None:
            handle.remove()
        assert sys.gettrace() is None
        raises(RuntimeError, "call reset_iter_state()", lambda: model(batch(0, 0)))
        model.reset_iter_state()
    train(model, sgd(model))
    assert_same(model, trained_alone())


def _interrupt_while_waiting():
    """Ctrl-C, once the main thread is in a call that waits."""
    main = threading.main_thread().ident

    def look():
        while _interrupts._watch().give_up is None or sys._current_frames()[main].f_code is not _interrupts._armed.__code__:
            os.sched_yield()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=look)
    thread.start()
    return thread


@ranks(2)
def hsdp_an_interrupt_ends_what_waits_on_all_ranks(folder):
    model = sharded(network(), timeout=1800.0)
    loss_of(model, batch(0, 0)).backward()
    for number, call in enumerate((lambda: model(batch(0, 0)), lambda: loss_of(model, batch(0, 0)).backward())):
        if dist.get_rank() == 0:
            if number == 1:
                loss = loss_of(model, batch(0, 0))
                call = loss.backward
            thread = _interrupt_while_waiting()
            error = raised(call)
            assert isinstance(error, KeyboardInterrupt), repr(error)
            thread.join()
            store().set(f"{folder.name}/{number}", "over")
        else:
            if number == 1:
                model(batch(0, 0))
            store().wait([f"{folder.name}/{number}"])
            error = raised(call)
            assert isinstance(error, shardwright.CancelledError) and "rank 0 was interrupted" in str(error), error
        model.reset_iter_state()
    train(model, sgd(model))
    assert_same(model, trained_alone())


@ranks(2)
def hsdp_hooks_of_accumulated_gradients_run(folder):
    model = sharded(network())
    optimizers = {each: torch.optim.SGD([each], lr=0.02, momentum=0.9) for each in model.parameters()}

    def step(param):
        optimizers[param].step()
        param.grad = None

    for each in optimizers:
        each.register_post_accumulate_grad_hook(step)
    for number in range(4):
        loss_of(model, batch(number, dist.get_rank())).backward()
    assert_same(model, trained_alone())


@ranks(2)
def hsdp_ranks_that_raise_elsewhere_tell_the_others(folder):
    model = sharded(network(), timeout=60.0)
    model(batch(0, 0))
    alone = dist.get_rank() == 0
    kept = model[0].weight
    if alone:
        model[0].weight = nn.Parameter(torch.zeros(37, 13))
    raises(shardwright.ShardwrightError, "0.weight was replaced", lambda: model(batch(0, 0)))
    model[0].weight = kept
    model.reset_iter_state()
    train(model, sgd(model))
    assert_same(model, trained_alone())

    class Encodes(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(13, 5), nn.Linear(5, 5)

        def encode(self, x):
            x = self.first(x)
            if alone:
                raise KeyError("no such token")
            return self.second(x)

    encodes = Encodes()
    for each in (encodes.first, encodes.second):
        fully_shard(each)
    fully_shard(encodes, timeout=60.0)
    register_fsdp_forward_method(encodes, "encode")
    raises(KeyError if alone else shardwright.ShardwrightError, "no such token",
           lambda: encodes.encode(batch(0, 0)).sum().backward())


@ranks(2)
def hsdp_ranks_may_use_different_units(folder):
    class Either(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.left, self.right = nn.Linear(13, 5), nn.Linear(13, 5)

        def forward(self, x):
            return self.left(x), self.right(x)

    model, alone = Either(), Either()
    for each in (model.left, model.right):
        fully_shard(each, reshard_after_forward=False)
    fully_shard(model)
    for step in range(6):
        model.zero_grad()
        model(batch(step, 0))[dist.get_rank()].pow(2).sum().backward()
        for name in ("left", "right"):
            layer = getattr(alone, name)
            expected = torch.autograd.grad(layer(batch(step, 0)).pow(2).sum(), layer.weight)[0] * 0.5
            assert torch.equal(getattr(model, name).weight.grad.full_tensor(), expected), name


@ranks(2)
def hsdp_sync_stream_waits_for_sums(folder):
    model = sharded(network())
    model.set_reduce_scatter_max_input_buffers(8)
    model.set_is_last_backward(False)
    loss_of(model, batch(0, dist.get_rank())).backward()
    hsdp_sync_stream()
    model.set_is_last_backward(True)
    loss_of(model, batch(0, dist.get_rank(), 1)).backward()
    total = network()
    sums = [loss_of(total, batch(0, rank, number)) for rank in range(2) for number in range(2)]
    expected = torch.autograd.grad(sum(sums) / 2, total[0].weight)[0]
    assert torch.allclose(model[0].weight.grad.full_tensor(), expected, rtol=1e-5, atol=1e-6)


@ranks(2)
def hsdp_outputs_may_be_dataclasses(folder):
    @dataclasses.dataclass
    class Out:
        y: torch.Tensor

    class Wraps(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(13, 5)

        def forward(self, x):
            return Out(self.layer(x).relu())

    inner = fully_shard(Wraps())
    out = inner(batch(0, 0))
    assert isinstance(out, Out)
    out.y.square().sum().backward()
    assert inner.layer.weight.grad is not None


@ranks(2)
def hsdp_calls_that_failed_are_made_again(folder):
    layer = nn.Linear(4, 4)
    raises(ValueError, "does not divide", lambda: fully_shard(layer, reshard_after_forward=3))
    raises(ValueError, "each comes once", lambda: fully_shard([layer, layer]))
    fully_shard(layer)(torch.ones(1, 4)).sum().backward()
    with torch.device("meta"):
        model = network()
    sharded(model)
    for each in (model[0], model[2]):
        each.to_empty(device="cpu")
    raises(RuntimeError, "is on the meta device", lambda: model(batch(0, 0)))
    model.to_empty(device="cpu")
    model.load_state_dict(network(5).state_dict())
    assert torch.equal(model(batch(0, 0)), network(5)(batch(0, 0)))
    model.set_manual_backward_finalization(True)
    loss_of(model, batch(0, 0)).backward()
    handle = model.finalize_backward(async_op=True)
    model.reset_iter_state()
    handle.wait()
    assert torch.equal(model(batch(0, 0)), network(5)(batch(0, 0)))


@ranks(2)
def hsdp_inference_may_come_first(folder):
    model = sharded(network())
    with torch.inference_mode():
        model(batch(0, 0))
    train(model, sgd(model))
    assert_same(model, trained_alone())
    policy = MixedPrecisionPolicy(apply_grad_on_fp32_main_grad=True)
    small = fully_shard(nn.Linear(3, 1).bfloat16(), mp_policy=policy)  # one rank has no row
    small(torch.ones(2, 3, dtype=torch.bfloat16)).sum().backward()
    assert small.weight.main_grad.dtype == torch.float32
