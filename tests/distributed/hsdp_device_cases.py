# SPDX-License-Identifier: Apache-2.0
"""Cases of where units of shardwright.torch.hsdp live, without a GPU: a device over memory of the host on which what torch does has
not ended until somebody waits for it, meshes of another kind than the memory, ids of NCCL, and what is said where something is
missing. What torch.cuda itself does is in hsdp_gpu_rank.py."""
import contextlib
import functools
import json
import unittest.mock

import shardwright
import shardwright.torch
import torch
import torch.distributed as dist
from cases import ranks
from hsdp_cases import assert_same, batch, loss_of, network, raises, sgd, sharded, train, trained_alone
from shardwright.hsdp import Mesh, host_device
from shardwright.torch import CPUOffloadPolicy, MixedPrecisionPolicy, _nccl, _own_groups, fully_shard, hsdp_sync_stream
from shardwright.torch.hsdp import _context, _parameters, _unit_device
from shardwright.torch.hsdp._state import state_of
from shardwright.torch.hsdp._unit_device import UnitDevice
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

# Calls that touch no memory which torch has, too; all others of units are watched.
HARMLESS = ("_create", "_state", "_grad_state", "_get_i64", "_set_i64", "_get_f64", "_set_f64", "_param_count", "_param_name",
            "_set_frozen", "_stats", "_set_prefetch", "_set_communicator", "_box", "_views", "_view_device", "_view_dlpack",
            "_estimate", "_set_memory", "_add_to_state")


class Pending(TorchDispatchMode):
    """Takes what torch does for not ended, until `settle`."""

    def __init__(self):
        super().__init__()
        self.last = None  # function of torch that nobody has waited for
        self.handed_over = set()  # names of calls of the library

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.last = str(function)
        return function(*args, **(kwargs or {}))

    def hand_over(self, name, call, *args):
        assert self.last is None, f"{name} was called before {self.last} had ended"
        self.handed_over.add(name)
        return call(*args)


class LateDevice(UnitDevice):
    """The host, on which work of torch ends late."""

    def __init__(self, pending, settles=True):
        super().__init__(torch.device("cpu"))
        self.pending, self.settles = pending, settles
        self.library = host_device()
        self.inputs_of, self.events = 0, []

    def settle(self):
        if self.settles:
            self.pending.last = None

    def wait_for(self, event):
        self.events.append(event)

    def inputs(self, values):
        self.inputs_of += 1
        return values


@contextlib.contextmanager
def late_device(kind="cpu", **options):
    """All units live on it; each call of the library that comes too early raises."""
    native, pending = shardwright._library.native, Pending()
    device = LateDevice(pending, **options)
    with contextlib.ExitStack() as stack:
        stack.enter_context(unittest.mock.patch.dict(_unit_device._KINDS, {kind: lambda index: device}))
        for name in dir(native):
            if name.startswith(("shw_hsdp_", "shw_py_hsdp_", "shw_py_work_")) and not name.endswith(HARMLESS):
                call = functools.partial(pending.hand_over, name, getattr(native, name))
                stack.enter_context(unittest.mock.patch.object(native, name, call))
        stack.enter_context(pending)
        yield device


# ---- what torch does has ended before the library has the memory ----

@ranks(2)
def hsdp_what_torch_does_has_ended_before_the_library_touches_memory(folder):
    expected = trained_alone(), trained_alone(micro_batches=2)
    with late_device() as device:
        model = sharded(network())
        train(model, sgd(model))
        added = sharded(network(), reshard_after_forward=False, prefetch_depth=2)
        train(added, sgd(added), 2, lambda model, is_last: model.set_requires_gradient_sync(is_last))
        handle = model[0].unshard(async_op=True)
        model[2].unshard()
        torch.ones(1).add_(1)
        handle.wait()
        model[0].reshard()
        model.set_is_last_backward(False)
        loss_of(model, batch(0, dist.get_rank())).backward()
        hsdp_sync_stream()
        torch.ones(1).add_(1)
        model.reset_iter_state()
        model.set_is_last_backward(True)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert_same(model, expected[0])
    assert_same(added, expected[1])
    assert {"shw_hsdp_unit_seal", "shw_hsdp_unit_pre_forward", "shw_hsdp_unit_post_forward", "shw_hsdp_unit_pre_backward",
            "shw_py_hsdp_add_grads", "shw_hsdp_unit_post_backward", "shw_hsdp_finalize_backward", "shw_hsdp_step_event",
            "shw_hsdp_unit_unshard", "shw_hsdp_unit_reshard", "shw_py_work_wait", "shw_hsdp_reset",
            "shw_hsdp_zero_grads"} <= device.pending.handed_over, device.pending.handed_over


@ranks(2)
def hsdp_other_forms_of_units_hand_over_what_has_ended(folder):
    def step(param):
        param.data.add_(param.grad.to_local().sum() * 0)
        param.grad = None

    with late_device():
        for options in ({"layout": "ragged"}, {"comm_fusion": False}, {"threshold": 4 * 37 + 1},
                        {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)},
                        {"offload_policy": CPUOffloadPolicy()}):
            model = sharded(network(), **options)
            for each in (model, model[0], model[2], model[4]):
                each.set_all_reduce_hook(lambda flat: flat.mul_(1.0))
            train(model, sgd(model))
        model = sharded(network())
        for each in model.parameters():
            each.register_post_accumulate_grad_hook(step)
        checkpoint(model, batch(0, dist.get_rank()).requires_grad_(), use_reentrant=False).sum().backward()
        model.load_state_dict(network(1).state_dict())
        with torch.no_grad():
            assert torch.equal(model(batch(0, 0)), network(1)(batch(0, 0)))


@ranks(2)
def hsdp_a_device_that_waits_for_nothing_is_found_out(folder):
    with late_device(settles=False):
        model = sharded(network())
        raises(AssertionError, "had ended", lambda: loss_of(model, batch(0, dist.get_rank())).backward())


@ranks(2)
def hsdp_inputs_go_where_the_root_computes(folder):
    with late_device() as device:
        model = sharded(network())
        checkpoint(model, batch(0, 0).requires_grad_(), use_reentrant=False).sum().backward()
        assert device.inputs_of == 1, "of the root, and not where it is computed again"
        model.set_post_optim_event("an event")
        model.set_post_optim_event(None)
        assert device.events == ["an event"]
    raises(NotImplementedError, "no events on the CPU", lambda: sharded(network()).set_post_optim_event("an event"))


# ---- memory of another kind than the mesh ----

@ranks(2)
def hsdp_shards_lie_with_the_host_on_a_mesh_of_gpus(folder):
    mesh = init_device_mesh("cuda", (2,))
    assert not _nccl.has_nccl(mesh.get_group())
    with late_device("cuda") as device:
        for layout in ("row", "ragged"):
            model = sharded(network(), mesh=mesh, offload_policy=CPUOffloadPolicy(), layout=layout)
            optimizer = sgd(model)
            train(model, optimizer)
            assert all(each.device_mesh is mesh and each.to_local().is_cpu and each.is_cpu for each in model.parameters())
            for name, value in trained_alone().state_dict().items():
                found = model.state_dict()[name]
                part = value.chunk(2)[dist.get_rank()] if layout == "row" else found.part_of(value)
                assert torch.equal(found.to_local(), part), name
        model = sharded(network(), mesh=mesh, offload_policy=CPUOffloadPolicy())
        for assign in (False, True):
            model.load_state_dict(network(1 + assign).state_dict(), assign=assign)
            with torch.no_grad():
                assert torch.equal(model(batch(0, 0)), network(1 + assign)(batch(0, 0)))
        shardwright.torch.save({"model": model}, folder / "p")
        other = sharded(network(5), mesh=mesh)
        shardwright.torch.load(folder / "p", into={"model": other})
        with torch.no_grad():
            assert torch.equal(other(batch(0, 0)), network(2)(batch(0, 0)))
        raises(ValueError, "device is cpu, and the mesh is one of cuda", lambda: fully_shard(nn.Linear(2, 2), mesh=mesh, device="cpu"))
        assert [each.device for each in state_of(model).context.cores] == [device.library]


@ranks(2)
def hsdp_parameters_and_buffers_are_moved(folder):
    meta, elsewhere = torch.device("meta"), torch.device("cuda", 7)
    module = nn.Sequential(nn.BatchNorm1d(3), nn.BatchNorm1d(3))
    module[0].register_buffer("later", torch.zeros(2, device="meta"))
    before = module[0].running_mean
    with unittest.mock.patch.object(torch.Tensor, "to", lambda each, device: each + (device == elsewhere)):
        _parameters.move_buffers([module], elsewhere, lambda each: each is module[1])
    assert module[0].running_mean is before and before.tolist() == [1.0] * 3 and module[0].num_batches_tracked.item() == 1
    assert module[1].running_mean.tolist() == [0.0] * 3 and module[0].weight.tolist() == [1.0] * 3 and module[0].later.is_meta
    part = torch.arange(12.0).reshape(3, 4)[:, 1:3]
    assert _parameters.copied_to(meta, part).is_meta and _parameters.copied_to(torch.device("cpu"), part.to("meta")).is_meta
    copied = _parameters.copied_to(torch.device("cpu"), part)
    assert copied.is_contiguous() and torch.equal(copied, part) and copied.data_ptr() != part.data_ptr()


@ranks(2)
def hsdp_shards_that_the_host_moved_are_refused(folder):
    model = sharded(network())
    found = next(each for each in state_of(model[0]).unit.params if each.name == "weight")
    found.home = torch.device("cuda", 0)  # as if the host had moved it from there
    raises(ValueError, "the shard of parameter 0.weight lies on cpu, where the host has put it; it must lie on cuda:0",
           lambda: model(batch(0, 0)))


# ---- transports ----

@ranks(2)
def hsdp_transports_that_sum_in_an_order_of_their_own_are_said_to(folder):
    made = []

    class Spy(_context.Hsdp):
        def __init__(self, *args, **options):
            made.append(options["unordered"])
            super().__init__(*args, **options)

    class Unordered(UnitDevice):
        def transport(self, mesh):
            return super().transport(mesh)._replace(in_order=False)

    with unittest.mock.patch.object(_context, "Hsdp", Spy):
        sharded(network())(batch(0, 0))
        with unittest.mock.patch.dict(_unit_device._KINDS, {"cpu": lambda index: Unordered(torch.device("cpu"))}):
            model = sharded(network())
            train(model, sgd(model))
    assert made == [False, True]
    assert_same(model, trained_alone())


class StandIn:
    """Of the plugin "cuda": gives other ids each time."""

    def __init__(self, problem=None):
        self.asked, self.problem = 0, problem

    def ask_plugin(self, plugin, question):
        assert (plugin, json.loads(question)) == ("cuda", {"ask": "nccl_id"})
        if self.problem is not None:
            raise self.problem
        self.asked += 1
        return f"{self.asked:0256x}"


@ranks(2, 4)
def hsdp_ranks_open_nccl_with_one_id(folder):
    rank, size, group = dist.get_rank(), dist.get_world_size(), dist.group.WORLD
    stand_in, opened = StandIn(), []

    def opens(plugin, text, context):
        opened.append((plugin, json.loads(text)))
        assert context is stand_in
        return text

    with (unittest.mock.patch.object(_nccl, "shared", lambda: stand_in),
          unittest.mock.patch.object(_nccl, "PluginCommunicator", opens)):
        for use in ("hsdp", "hsdp reduce", "hsdp"):  # the last one after a reset
            assert _nccl.open_communicator(group, use, 60.0, 3) == json.dumps(opened[-1][1])
            dist.barrier()  # as ranks meet that make a communicator
        assert [each[0] for each in opened] == ["cuda"] * 3
        assert [each[1] for each in opened] == [
            {"id": f"{number:0256x}", "rank": rank, "size": size, "device": 3, "seconds": 60.0} for number in (1, 2, 3)]
        stand_in.problem = shardwright.UnavailableError("libnccl.so.2 is not there") if rank == 0 else None
        raises(shardwright.UnavailableError, "rank 0 has no id of NCCL: libnccl.so.2 is not there",
               lambda: _nccl.open_communicator(group, "hsdp", 60.0, 3))


@ranks(2)
def hsdp_nccl_is_for_meshes_that_have_it(folder):
    nccl = unittest.mock.Mock()
    nccl.name.return_value = "nccl"
    own, others = _own_groups.group_of([0, 1]), dist.group.WORLD
    assert not _nccl.has_nccl(others) and not _nccl.has_nccl(own) and not _nccl.has_nccl(None)
    assert _unit_device.default_kind() == "cpu"

    def backend(group, device):
        assert device == torch.device("cuda")
        if group is others:
            return nccl
        raise RuntimeError("No backend type associated with device type cuda")

    with unittest.mock.patch.object(dist.ProcessGroup, "_get_backend", backend):
        assert _nccl.has_nccl(others) and _nccl.has_nccl(own), "groups of shardwright are those of the world"
        assert not _nccl.has_nccl(dist.new_group([0, 1]))
        with unittest.mock.patch.object(torch.cuda, "is_available", lambda: True):
            assert _unit_device.default_kind() == "cuda"
        with unittest.mock.patch.object(torch.cuda, "is_available", lambda: False):
            assert _unit_device.default_kind() == "cpu"
        with unittest.mock.patch.object(_unit_device, "_opened", lambda index: None):
            device = _unit_device.CudaDevice(1)
        transport = device.transport(init_device_mesh("cuda", (2,)))
        assert not transport.in_order and transport.open.func is _nccl.open_communicator and transport.open.keywords == {"device": 1}
    assert device.transport(init_device_mesh("cuda", (2,))).in_order
    assert (device.device, device.home(False), device.home(True)) == (
        torch.device("cuda", 1), torch.device("cuda", 1), torch.device("cpu"))


# ---- what is missing ----

@ranks(2)
def hsdp_what_a_gpu_needs_is_named(folder):
    layer, cuda = nn.Linear(2, 2), init_device_mesh("cuda", (2,))
    with unittest.mock.patch.object(torch.cuda, "is_available", lambda: False):
        for options in ({"mesh": cuda}, {"device": "cuda"}, {"mesh": Mesh((2,), rank=dist.get_rank()), "device": "cuda:0"}):
            for text in ("torch finds none here", "mesh=init_device_mesh('cpu', ...)"):
                raises(shardwright.UnavailableError, text, lambda options=options: fully_shard(layer, **options))
    lacking = unittest.mock.Mock()
    lacking.load_plugin.side_effect = shardwright.NotFoundError("there is no plugin 'cuda'")
    with (unittest.mock.patch.object(torch.cuda, "is_available", lambda: True),
          unittest.mock.patch.object(torch.cuda, "current_device", lambda: 7),
          unittest.mock.patch.object(_unit_device, "shared", lambda: lacking)):
        for text in ("units on cuda:7 need the plugin libshardwright_cuda.so", "there is no plugin 'cuda'", "docs/install.md"):
            raises(shardwright.UnavailableError, text, lambda: fully_shard(layer, mesh=cuda))
    raises(ValueError, "device is cuda, and the mesh is one of cpu",
           lambda: fully_shard(layer, mesh=init_device_mesh("cpu", (2,)), device="cuda"))
    raises(NotImplementedError, "found xpu", lambda: fully_shard(layer, mesh=init_device_mesh("xpu", (2,))))
    assert not isinstance(layer.weight, DTensor), "nothing of it was touched"
