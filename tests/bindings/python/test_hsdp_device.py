# SPDX-License-Identifier: Apache-2.0
"""shardwright.hsdp on a device whose memory faults under the host's hands (tests/conformance/device/apart_table.c): the bits are
those of the host, checkpoints go round, views say where they lie, and what only the host's memory can do is refused by name."""
import ctypes
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import shardwright
from shardwright import hsdp as training
from shardwright.hsdp import Hsdp, Mesh, Param

EXTENSION, APART = 12, 5
SHAPE = (5, 3)
RANKS, ROUNDS = 2, 3


@pytest.fixture(scope="module")
def context():
    made = shardwright.Context(plugin_path=os.path.join(os.environ["SHW_BUILD_DIR"], "lib"))
    made.load_plugin("apart")
    return made


@pytest.fixture
def device(context):
    made = training.PluginDevice("apart", context=context)
    yield made
    made.close()


def seen(context, address, shape=SHAPE, dtype=np.float32):
    """What lies at an address of the device."""
    found = int(context.ask_plugin("apart", f"behind {address}"))
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(found), dtype).reshape(shape)


class OnDevice:
    """A tensor of a framework: memory of the device that a unit lends, as that of something else."""

    def __init__(self, view, number=None):
        self.view, self.number = view, number

    def __dlpack_device__(self):
        return self.number or self.view.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None):
        assert stream == -1  # nothing is to wait
        return self.view.__dlpack__(max_version=max_version)


def one_unit(device=None, *, context=None, tensor=None, **options):
    hsdp = Hsdp(Mesh((1,), rank=0), device=device, context=context)
    unit = hsdp.unit("layer", **options)
    weight = np.arange(15, dtype=np.float32).reshape(SHAPE) if tensor is None else tensor
    unit.add_params([Param("weight", weight)])
    unit.seal()
    return hsdp, unit


def on_ranks(function):
    with ThreadPoolExecutor(RANKS) as pool:
        return [each.result() for each in [pool.submit(function, rank) for rank in range(RANKS)]]


def trained(context, device):
    """Shards and gradients after each round, of all ranks."""
    ends = training.thread_communicators(RANKS)

    def look(unit, view):
        address, shape, *_ = unit.views(view)[0]
        if device is None:
            return getattr(unit, view)(0).numpy()
        return seen(context, address, shape)

    def run(rank):
        mesh = Mesh((RANKS,), rank=rank)
        mesh.set_communicator(0, ends[rank])
        found = []
        with Hsdp(mesh, device=device, context=context) as hsdp:
            unit = hsdp.unit("layer", param_dtype="bfloat16", reduce_dtype="float32")
            unit.add_params([Param("weight", np.linspace(-1, 1, 15, dtype=np.float32).reshape(SHAPE))])
            unit.seal()
            for number in range(ROUNDS):
                unit.pre_forward()
                unit.post_forward()
                unit.pre_backward()
                unit.add_grads([0], [np.random.default_rng([number, rank]).standard_normal(SHAPE, np.float32)],
                               take=number == 1)
                unit.post_backward()
                hsdp.finalize_backward()
                grad, local = look(unit, "grad"), look(unit, "local")
                local -= grad * np.float32(0.1)
                found += [grad.tobytes(), local.tobytes(), hsdp.global_norm()]
                del grad, local
                hsdp.zero_grads()
                hsdp.step_event()
        return found

    return on_ranks(run)


def test_bits_are_those_of_the_host(context, device):
    assert trained(context, device) == trained(context, None)
    assert context.ask_plugin("apart", "allocations") == "0"


def test_a_device_says_what_it_is(device):
    assert (device.name, device.number, device.is_host) == ("apart in C", (EXTENSION, APART), False)
    host = training.host_device(inline_lanes=True)
    assert (host.name, host.number, host.is_host) == ("host", (1, 0), True)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(host)
    host.close()
    host.close()


def test_the_host_may_be_given_as_a_device():
    hsdp, unit = one_unit(training.host_device())
    assert unit.local(0).__dlpack_device__() == (1, 0)
    assert unit.local(0).numpy()[4, 2] == 14
    hsdp.close()


def test_views_lie_on_the_device(context, device):
    hsdp, unit = one_unit(device, context=context)
    device.close()  # the context keeps it
    view = unit.local(0)
    assert view.__dlpack_device__() == (EXTENSION, APART)
    assert type(view.__dlpack__()).__name__ == "PyCapsule"
    assert seen(context, unit.views("local")[0][0])[4, 2] == 14
    with pytest.raises(BufferError, match=r"on device 'apart in C' \(12, 5\), and numpy reaches memory of the host only"):
        view.numpy()
    with pytest.raises(BufferError, match=r"lies on device 'apart in C' \(12, 5\)"):
        view.__dlpack__(dl_device=(1, 0))
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(view)
    hsdp.close()


def test_tensors_of_the_device_are_taken(context, device):
    lender, lent = one_unit(device, context=context)
    hsdp, unit = one_unit(device, context=context, tensor=OnDevice(lent.local(0)))
    assert seen(context, unit.views("local")[0][0]).tolist() == np.arange(15).reshape(SHAPE).tolist()
    for take in (False, True):
        unit.pre_forward()
        unit.post_forward()
        unit.pre_backward()
        unit.add_grads([0], [OnDevice(lent.local(0))], take=take)
        unit.post_backward()
        hsdp.finalize_backward()
    assert seen(context, unit.views("grad")[0][0])[4, 2] == 28
    hsdp.close()
    lender.close()


def test_tensors_of_another_device_are_refused(context, device):
    lender, lent = one_unit(device, context=context)
    with pytest.raises(shardwright.UnimplementedError, match=r"'weight' .*lies on extension:5, and the context has its memory on cpu"):
        one_unit(tensor=OnDevice(lent.local(0)))
    hsdp, unit = one_unit()
    unit.pre_forward()
    with pytest.raises(shardwright.UnimplementedError, match=r"grads\[0\].*lies on extension:5"):
        unit.add_grads([0], [OnDevice(lent.local(0))])
    with pytest.raises(shardwright.InvalidArgumentError, match="which is no tensor"):
        unit.add_grads([0], [object()])
    hsdp.close()
    lender.close()


def test_offloaded_shards_are_arrays_of_the_host(context, device):
    found = []
    for place in (None, device):
        hsdp, unit = one_unit(place, context=context, offload=True, param_dtype="bfloat16", reduce_dtype="float64")
        for number in range(ROUNDS):
            unit.pre_forward()
            unit.post_forward()
            unit.pre_backward()
            unit.add_grads([0], [np.random.default_rng(number).standard_normal(SHAPE, np.float32)])
            unit.post_backward()
            hsdp.finalize_backward()
            local = unit.local(0).numpy()
            local -= unit.grad(0).numpy() * np.float32(0.1)
            found.append((local.tobytes(), hsdp.global_norm()))
            del local
            hsdp.zero_grads()
            hsdp.step_event()
        hsdp.close()
    assert found[:ROUNDS] == found[ROUNDS:]


@pytest.mark.parametrize("offload", [False, True])
def test_checkpoints_go_from_the_device_to_the_host_and_back(context, device, tmp_path, offload):
    weight = np.random.default_rng(5).standard_normal(SHAPE, np.float32)
    saved, unit = one_unit(device, context=context, tensor=weight, offload=offload)
    state = shardwright.State()
    saved.add_to_state(state, "model.")
    shardwright.save(state, tmp_path / "apart")
    host, loaded = one_unit()
    state = shardwright.State()
    host.add_to_state(state, "model.")
    shardwright.load(tmp_path / "apart", into=state)
    assert loaded.local(0).numpy().tobytes() == weight.tobytes()
    shardwright.save(state, tmp_path / "host")
    back, unit = one_unit(device, context=context)
    state = shardwright.State()
    back.add_to_state(state, "model.")
    shardwright.load(tmp_path / "host", into=state)
    assert seen(context, unit.views("local")[0][0]).tobytes() == weight.tobytes()
    for each in (saved, host, back):
        each.close()


def test_a_device_that_was_closed_is_refused(context, device):
    device.close()
    with pytest.raises(shardwright.FailedPreconditionError, match="the device was closed"):
        one_unit(device, context=context)


def test_a_plugin_without_a_device_is_named(context):
    with pytest.raises(shardwright.NotFoundError, match="no_such_plugin"):
        training.PluginDevice("no_such_plugin", context=context)
    context.load_plugin("sample_team")
    with pytest.raises(shardwright.UnimplementedError, match="has no device"):
        training.PluginDevice("sample_team", context=context)
