# SPDX-License-Identifier: Apache-2.0
"""shardwright.hsdp: threads are ranks, a small network with hand-written gradients, and one process that adds in the order that
is promised, bit for bit."""
import dataclasses
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import shardwright
from shardwright import hsdp as training
from shardwright.hsdp import EstimatedUnit, Hsdp, Mesh, Param, estimate
from shardwright.hsdp.memory import KINDS

WIDTHS = (13, 37, 29, 3)
BATCH, STEPS = 4, 20
RATE, MOMENTUM = np.float32(0.05), np.float32(0.9)


def first_parameters():
    made = []
    for layer, (inputs, outputs) in enumerate(zip(WIDTHS, WIDTHS[1:], strict=False)):
        random = np.random.default_rng(layer)
        made.append((random.standard_normal((outputs, inputs), dtype=np.float32) / np.float32(inputs),
                     random.standard_normal(outputs, dtype=np.float32)))
    return made


def micro_batch(step, number, rank):
    return np.random.default_rng([step, number, rank]).standard_normal((BATCH, WIDTHS[0]), dtype=np.float32)


def forward(x, weight, bias, is_last):
    y = x @ weight.T + bias
    return y if is_last else np.tanh(y)


def backward(grad, x, y, weight, is_last):
    """Gradients of the input, the weight and the bias; the loss is half the squared distance from zero."""
    grad = grad if is_last else grad * (np.float32(1) - y * y)
    return grad @ weight, grad.T @ x, grad.sum(axis=0)


def gradients(parameters, x):
    last = len(parameters) - 1
    seen = [x]
    for layer, (weight, bias) in enumerate(parameters):
        seen.append(forward(seen[-1], weight, bias, layer == last))
    grad, made = seen[-1], []
    for layer in range(last, -1, -1):
        grad, of_weight, of_bias = backward(grad, seen[layer], seen[layer + 1], parameters[layer][0], layer == last)
        made.insert(0, [of_weight, of_bias])
    return made


def added(left, right):
    return [[a + b for a, b in zip(one, two, strict=True)] for one, two in zip(left, right, strict=True)]


def train_alone(shards, replicas, micro_batches):
    """One process: micro-batches of a rank, then the shard axis in rank order, then the replicas, then the mean."""
    parameters = [[*each] for each in first_parameters()]
    momenta = [[np.zeros_like(value) for value in each] for each in parameters]
    share = np.float32(1.0 / (shards * replicas))
    for step in range(STEPS):
        total = None
        for replica in range(replicas):
            of_shards = None
            for shard in range(shards):
                own = None
                for number in range(micro_batches):
                    made = gradients(parameters, micro_batch(step, number, replica * shards + shard))
                    own = made if own is None else added(own, made)
                of_shards = own if of_shards is None else added(of_shards, own)
            total = of_shards if total is None else added(total, of_shards)
        for layer, grads in enumerate(total):
            for each, grad in enumerate(grads):
                momenta[layer][each] = momenta[layer][each] * MOMENTUM + grad * share
                parameters[layer][each] = parameters[layer][each] - momenta[layer][each] * RATE
    return parameters


class Trainer:
    """One rank: a unit for each layer, momenta for its shards."""

    def __init__(self, mesh, parameters=None, **options):
        self.hsdp = Hsdp(mesh, shard_axis=len(mesh.shape) - 1, replicate_axis=0 if len(mesh.shape) == 2 else None)
        self.units = []
        for layer, (weight, bias) in enumerate(parameters or first_parameters()):
            unit = self.hsdp.unit(f"layer {layer}", **options)
            unit.add_params([Param(f"{layer}.weight", weight), Param(f"{layer}.bias", bias)])
            unit.seal()
            self.units.append(unit)
        self.locals = [[unit.local(each).numpy() for each in range(2)] for unit in self.units]
        self.momenta = [[np.zeros_like(value) for value in each] for each in self.locals]

    def run_forward_and_backward(self, x):
        last = len(self.units) - 1
        seen, inputs = x, []
        for layer, unit in enumerate(self.units):
            unit.pre_forward()
            weight, bias = unit.full(0).numpy(), unit.full(1).numpy()
            inputs.append(seen)
            seen = forward(seen, weight, bias, layer == last)
            inputs.append(seen)
            unit.post_forward()
        grad = seen
        for layer in range(last, -1, -1):
            unit = self.units[layer]
            unit.pre_backward()
            weight = unit.full(0).numpy()
            grad, of_weight, of_bias = backward(grad, inputs[2 * layer], inputs[2 * layer + 1], weight, layer == last)
            unit.add_grads([0, 1], [np.ascontiguousarray(of_weight), of_bias], take=layer % 2 == 0)
            unit.post_backward()

    def step(self, number, rank, micro_batches):
        for each in range(micro_batches):
            is_last = each + 1 == micro_batches
            self.hsdp.set(requires_gradient_sync=is_last, is_last_backward=is_last)
            self.run_forward_and_backward(micro_batch(number, each, rank))
            self.hsdp.finalize_backward()
        for layer, unit in enumerate(self.units):
            for each in range(2):
                grad = unit.grad(each).numpy()
                self.momenta[layer][each][...] = self.momenta[layer][each] * MOMENTUM + grad
                self.locals[layer][each][...] = self.locals[layer][each] - self.momenta[layer][each] * RATE
        self.hsdp.step_event()
        self.hsdp.zero_grads()

    def whole(self):
        found = []
        for unit in self.units:
            unit.unshard()
            found.append([unit.full(each).numpy().copy() for each in range(2)])
            unit.reshard()
        return found


def meshes(shards, replicas=1):
    """A mesh for each rank, with communicators along its axes."""
    shape = (shards,) if replicas == 1 else (replicas, shards)
    made = [Mesh(shape, rank=rank) for rank in range(shards * replicas)]
    for replica in range(replicas if shards > 1 else 0):
        for shard, end in enumerate(training.thread_communicators(shards)):
            made[replica * shards + shard].set_communicator(len(shape) - 1, end)
    for shard in range(shards if replicas > 1 else 0):
        for replica, end in enumerate(training.thread_communicators(replicas)):
            made[replica * shards + shard].set_communicator(0, end)
    return made


def on_ranks(count, body):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(body, range(count)))


def assert_equal(found, expected):
    for one, two in zip(found, expected, strict=True):
        for a, b in zip(one, two, strict=True):
            assert np.array_equal(a.view(np.uint32), b.view(np.uint32))


@pytest.mark.parametrize(("shards", "replicas", "micro_batches", "options"), [
    (1, 1, 1, {}), (2, 1, 1, {}), (3, 1, 2, {}), (2, 2, 1, {}), (2, 2, 2, {"reshard_after_forward": False}),
    (3, 1, 1, {"layout": "ragged"})])
def test_training_has_the_bits_of_one_process(shards, replicas, micro_batches, options):
    places = meshes(shards, replicas)

    def train(rank):
        trainer = Trainer(places[rank], **options)
        for number in range(STEPS):
            trainer.step(number, rank, micro_batches)
        return trainer.whole()

    expected = train_alone(shards, replicas, micro_batches)
    for found in on_ranks(shards * replicas, train):
        assert_equal(found, expected)


def test_what_some_ranks_save_others_load(tmp_path):
    first = first_parameters()

    def save(rank):
        trainer = Trainer(places[rank])
        state = shardwright.State()
        trainer.hsdp.add_to_state(state, "model.")
        shardwright.save(state, tmp_path / "c", collective=ends[rank])

    def load(rank):
        zeros = [(np.zeros_like(weight), np.zeros_like(bias)) for weight, bias in first]
        trainer = Trainer(places[rank], zeros)
        state = shardwright.State(writable=True)
        trainer.hsdp.add_to_state(state, "model.")
        shardwright.load(tmp_path / "c", into=state, collective=ends[rank])
        trainer.hsdp.step_event()
        return trainer.whole()

    places, ends = meshes(2), shardwright.thread_collectives(2)
    on_ranks(2, save)
    with shardwright.open(tmp_path / "c") as checkpoint:
        assert np.array_equal(np.asarray(checkpoint["model.0.weight"][...]), first[0][0])
    for count in (1, 3):
        places, ends = meshes(count), shardwright.thread_collectives(count)
        for found in on_ranks(count, load):
            assert_equal(found, first)


def alone(**options):
    context = Hsdp(Mesh((1,), rank=0))
    unit = context.unit("layer", **options)
    unit.add_params([Param("w", np.arange(6, dtype=np.float32).reshape(3, 2)), Param("b", shape=(2,), dtype="float32")])
    unit.seal()
    return context, unit


def test_states_boxes_and_settings_are_told():
    context, unit = alone()
    assert (unit.state, unit.grad_state, unit.param_count, unit.param_name(1)) == ("sharded", "none", 2, "b")
    assert unit.box(0) == ((0, 0), (3, 2), (3, 2))
    work = unit.unshard(async_op=True)
    assert work.wait(1.0) and work.done() and unit.state == "unsharded"
    assert unit.views("full")[0][1:] == ((3, 2), shardwright.dtype_number("float32"), 24)
    unit.reshard("forward")
    assert [address for address, *_ in unit.views("grad")] == [0, 0]
    for name, value in {"requires_gradient_sync": False, "reduce_op": "sum", "unused_policy": "skip", "keep_unsharded": True}.items():
        context.set(**{name: value})
        assert unit.get(name) == value
    unit.set(reshard_after_forward=False, divide_factor=2.0)
    context.set(prefetch_depth=0, max_inflight_reduce=2, is_last_backward=False)
    assert context.settings() == training.ContextSettings(max_inflight_reduce=2, prefetch_depth=0, is_last_backward=False)
    unit.set_prefetch([unit], "backward")
    assert context.stats("shard").current_bytes == 32 and unit.stats().current_bytes >= 32
    assert context.stats().unsharded_units == 0


def test_all_settings_of_a_unit_are_read_back():
    _, unit = alone(reshard_after_forward=True, unused="skip")
    known = training.UnitSettings(requires_gradient_sync=True, requires_all_reduce=True, reshard_after_forward=True,
                                  reshard_after_backward=True, reduce_op="average", divide_factor=0.0, unshard_in_backward=True,
                                  keep_unsharded=False, unused_policy="skip")
    assert unit.settings() == known
    changes = {"requires_gradient_sync": False, "requires_all_reduce": False, "reshard_after_forward": None,
               "reshard_after_backward": False, "reduce_op": "sum", "divide_factor": 3.0, "unshard_in_backward": False,
               "keep_unsharded": True, "unused_policy": "zero"}
    assert set(changes) == {each.name for each in dataclasses.fields(known)}
    for name, value in changes.items():
        unit.set(**{name: value})
        known = dataclasses.replace(known, **{name: value})
        assert unit.settings() == known, name


@pytest.mark.parametrize("shape", [(2,), (2, 2)])
def test_reductions_that_are_polled_come_to_their_end(shape):
    ends = [training.thread_communicators(2) for _ in range(len(shape) * 2)]

    def reduce(rank):
        mesh = Mesh(shape, rank=rank)
        if len(shape) == 1:
            mesh.set_communicator(0, ends[0][rank])
        else:
            mesh.set_communicator(0, ends[rank % 2][rank // 2])
            mesh.set_communicator(1, ends[2 + rank // 2][rank % 2])
        context = Hsdp(mesh, shard_axis=len(shape) - 1, replicate_axis=0 if len(shape) == 2 else None)
        unit = context.unit("layer")
        unit.add_params([Param("weight", np.ones((4, 3), np.float32))])
        unit.seal()
        unit.unshard()
        unit.add_grads([0], [np.full((4, 3), rank + 1, np.float32)])
        work = unit.reduce(async_op=True)
        while not work.done():
            os.sched_yield()
        assert unit.grad_state == "ready"
        return unit.grad(0).numpy().tolist()

    world = 2 * len(shape)
    mean = sum(range(1, world + 1)) / world
    assert on_ranks(world, reduce) == [[[mean] * 3] * 2] * world


def test_the_host_owns_memory_of_whole_parameters():
    _, unit = alone(host_memory=True)
    weight, bias = np.zeros((3, 2), np.float32), np.ones(2, np.float32)
    unit.set_memory([weight.ctypes.data, bias.ctypes.data], [weight.nbytes, bias.nbytes])
    unit.pre_forward()
    assert weight[2, 1] == 5 and not bias.any()
    with pytest.raises(shardwright.FailedPreconditionError, match="UNSHARDED"):
        unit.set_memory([weight.ctypes.data], [weight.nbytes])


def test_hosts_with_streams_are_asked_before_memory_is_touched():
    seen, waits = [], []

    def settle():
        seen.append(1)
        if waits:
            raise waits.pop()

    hsdp = Hsdp(Mesh((1,), rank=0), settle=settle)
    unit = hsdp.unit("layer")
    work = []
    calls = [lambda: unit.add_params([Param("weight", np.ones((2, 2), np.float32))]), unit.seal, unit.pre_forward, unit.post_forward,
             unit.pre_backward, lambda: unit.add_grads([0], [np.ones((2, 2), np.float32)]), unit.post_backward,
             hsdp.finalize_backward, hsdp.global_norm, lambda: hsdp.scale_grads(2.0), hsdp.zero_grads, hsdp.step_event,
             lambda: work.append(unit.unshard(async_op=True)), lambda: work[0].wait(), lambda: work[0].done(), unit.wait, unit.reshard,
             hsdp.reset]
    for number, call in enumerate(calls):
        seen.clear()
        call()
        assert seen, number
    seen.clear()
    assert unit.state == "sharded" and unit.local(0).numpy().tolist() == [[1, 1], [1, 1]] and hsdp.stats().current_bytes > 0
    unit.set(requires_gradient_sync=True)
    assert not seen, "these touch nothing"
    waits.append(MemoryError("the stream has failed"))
    with pytest.raises(MemoryError, match="the stream has failed"):
        unit.pre_forward()
    assert unit.state == "sharded", "nothing was begun"
    hsdp.close()


def test_views_live_as_long_as_they_are_held():
    context, unit = alone()
    view = unit.local(0).numpy()
    torch_like = unit.local(0)
    assert torch_like.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError):
        torch_like.__dlpack__(copy=True)
    with pytest.raises(shardwright.FailedPreconditionError, match="has no gradient"):
        unit.grad(0).numpy()
    context.close()
    context.close()
    assert view[2, 1] == 5


@pytest.mark.parametrize(("call", "message"), [
    (lambda context, unit: unit.add_params([Param("x")]), "neither a tensor nor a shape"),
    (lambda context, unit: unit.add_params([Param("x", "text")]), "which is no tensor"),
    (lambda context, unit: context.unit("x", layout="tiles"), "layout"),
    (lambda context, unit: context.unit("x", param_dtype="float99"), "float99"),
    (lambda context, unit: context.unit("x", reshard_after_forward=3), "secondary_size is 3"),
    (lambda context, unit: context.set(requires_gradient_sync=1), "True or False"),
    (lambda context, unit: unit.set(reduce_op="max"), "one of average, sum"),
    (lambda context, unit: unit.set(speed=1), "there is no setting 'speed'"),
    (lambda context, unit: unit.get("speed"), "there is no setting 'speed'"),
    (lambda context, unit: unit.reshard("later"), "phase"),
    (lambda context, unit: unit.views("half"), "view"),
    (lambda context, unit: Mesh((2,), rank=2), "rank"),
    (lambda context, unit: Mesh((2,), rank=0).set_communicator(0, training.fake_communicator(0, 3)), "rank 0 of 3"),
    (lambda context, unit: training.thread_communicators(0), "size"),
    (lambda context, unit: training.delayed(training.fake_communicator(0, 1), -1.0), "latency_ns")])
def test_what_is_wrong_is_named(call, message):
    context, unit = alone()
    with pytest.raises(shardwright.InvalidArgumentError, match=message):
        call(context, unit)


def test_calls_that_come_too_early_are_refused():
    context, unit = alone()
    with pytest.raises(shardwright.FailedPreconditionError, match="no communicator"):
        Hsdp(Mesh((2,), rank=0))
    with pytest.raises(shardwright.FailedPreconditionError, match="is sealed"):
        unit.add_params([Param("x", np.zeros(2, np.float32))])
    with pytest.raises(shardwright.FailedPreconditionError, match="SHARDED"):
        unit.add_grads([0], [np.zeros((3, 2), np.float32)])
    with pytest.raises(ValueError, match="argument 2"):
        unit.add_grads([0, 1], [np.zeros((3, 2), np.float32)])
    with pytest.raises(shardwright.FailedPreconditionError, match="UNSHARDED"):
        unit.full(0).numpy()


def test_operations_of_communicators():
    ends = training.thread_communicators(2)

    def use(rank):
        end = ends[rank]
        own = np.array([rank + 1, 10 * rank], np.float32)
        gathered, part = np.zeros(4, np.float32), np.zeros(1, np.float32)
        assert end.all_gather(own, gathered).wait()
        assert end.reduce_scatter(own, part, op="max").wait()
        total = own.copy()
        assert end.all_reduce(total).wait()
        swapped = np.zeros(2, np.float32)
        assert end.all_to_all(own, swapped).wait()
        sent = own.copy()
        assert end.broadcast(sent, 1).wait()
        assert end.barrier().wait()
        return [gathered.tolist(), part.tolist(), total.tolist(), swapped.tolist(), sent.tolist()]

    assert (ends[1].rank, ends[1].size, ends[1].name) == (1, 2, "threads")
    assert on_ranks(2, use) == [[[1, 0, 2, 10], [2], [3, 10], [1, 2], [2, 10]], [[1, 0, 2, 10], [10], [3, 10], [0, 10], [2, 10]]]
    link = training.delayed(training.fake_communicator(0, 2), 0.001)
    begin = time.monotonic()
    assert link.barrier().wait()
    assert time.monotonic() - begin >= 0.001
    with pytest.raises(shardwright.InvalidArgumentError, match="op"):
        link.all_reduce(np.zeros(1, np.float32), op="median")


def test_a_rank_that_fails_tells_the_others_and_all_go_on():
    places = [Mesh((2,), rank=rank) for rank in range(2)]
    ends = training.thread_communicators(2)
    fresh = training.thread_communicators(2)

    def train(rank):
        places[rank].set_communicator(0, ends[rank])
        trainer = Trainer(places[rank])
        if rank == 1:
            ends[1].abort("forward raised")
        with pytest.raises(shardwright.AbortedError, match="forward raised"):
            trainer.step(0, rank, 1)
        with pytest.raises(shardwright.FailedPreconditionError, match="forward raised"):
            trainer.hsdp.finalize_backward()
        places[rank].set_communicator(0, fresh[rank])
        trainer.hsdp.reset()
        for number in range(STEPS):
            trainer.step(number, rank, 1)
        return trainer.whole()

    for found in on_ranks(2, train):
        assert_equal(found, train_alone(2, 1, 1))


def test_a_signal_ends_a_wait():
    end, _silent = training.thread_communicators(2)
    work = end.barrier()
    assert not work.done() and not work.wait(0.01)

    class Interrupted(Exception):
        pass

    def interrupt(*_):
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        killer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
        killer.start()
        with pytest.raises(Interrupted):
            work.wait()
    finally:
        signal.signal(signal.SIGUSR1, before)
    work.close()


def test_a_plugin_brings_a_communicator():
    context = shardwright.Context(plugin_path=os.path.join(os.environ["SHW_BUILD_DIR"], "lib"))
    context.load_plugin("sample_team")
    ends = [training.PluginCommunicator("sample_team", f"python {rank} 2", context=context) for rank in range(2)]

    def gather(rank):
        out = np.zeros(2, np.int64)
        assert ends[rank].all_gather(np.array([rank + 5]), out).wait()
        return out.tolist()

    assert on_ranks(2, gather) == [[5, 6], [5, 6]]


def test_a_plugin_answers_what_it_knows():
    context = shardwright.Context(plugin_path=os.path.join(os.environ["SHW_BUILD_DIR"], "lib"))
    context.load_plugin("sample_team")
    assert context.ask_plugin("sample_team", "ranks") == "64"
    with pytest.raises(shardwright.InvalidArgumentError, match="the only question is 'ranks'"):
        context.ask_plugin("sample_team")


# ---- memory that is foretold ----

@pytest.mark.parametrize(("shards", "replicas", "options"), [
    (1, 1, {}), (2, 1, {}), (3, 1, {"reshard_after_forward": False}), (2, 2, {"reduce_dtype": "float64"}),
    (3, 1, {"layout": "ragged"}), (4, 1, {"reshard_after_forward": True, "grad_dtype": "float64"})])
def test_the_memory_of_an_iteration_is_foretold(shards, replicas, options):
    places = meshes(shards, replicas)

    def train(rank):
        trainer = Trainer(places[rank], **options)
        grads = np.float64 if "grad_dtype" in options else np.float32
        for number in range(3):
            trainer.run_forward_and_backward(micro_batch(number, 0, rank))
            trainer.hsdp.finalize_backward()
            assert all(unit.grad(0).numpy().dtype == grads for unit in trainer.units)
            trainer.hsdp.step_event()
            trainer.hsdp.zero_grads()
        return {kind: trainer.hsdp.stats(kind).peak_bytes for kind in (None, *KINDS)}

    units = [EstimatedUnit([Param(f"{layer}.weight", shape=weight.shape, dtype="float32"),
                            Param(f"{layer}.bias", shape=bias.shape, dtype="float32")], adds_grads=layer % 2 == 1, **options)
             for layer, (weight, bias) in enumerate(first_parameters())]
    foretold = {kind: estimate(units, shards, replicas, kind=kind, ordered_sums=True).peak_bytes for kind in (None, *KINDS)}
    assert foretold[None] > 0
    assert (estimate(units, shards, replicas, kind="landing").peak_bytes > 0) == (shards > 1 or replicas > 1), "parts of all ranks"
    for measured in on_ranks(shards * replicas, train):
        assert measured == foretold


def test_estimates_refuse_what_units_refuse():
    unit = EstimatedUnit([Param("w", shape=(3, 2), dtype="float32", shard_dim=1)])
    with pytest.raises(shardwright.InvalidArgumentError, match="w"):
        estimate([unit], 4)
    with pytest.raises(shardwright.InvalidArgumentError):
        estimate([unit], 0)
    with pytest.raises(shardwright.InvalidArgumentError, match="kind"):
        estimate([unit], 2, kind="all of it")
    with pytest.raises(shardwright.InvalidArgumentError, match="neither a tensor nor a shape"):
        estimate([EstimatedUnit([Param("w")])], 2)
