# SPDX-License-Identifier: Apache-2.0
"""Unit: parameters that are gathered and reduced together."""
from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .._buffers import import_leaf
from .._library import native
from .._options import word
from ..errors import InvalidArgumentError
from ..tensor import dtype_number
from . import memory, settings
from .device import is_host_number
from .settings import UnitSettings
from .work import Work

if TYPE_CHECKING:
    import numpy

    from .context import Hsdp

_FROZEN, _REPLICATE = 1, 2
_STATES = ("sharded", "gathering", "unsharded", "secondary")
_GRAD_STATES = ("none", "local", "packed", "scattering", "partial", "replicating", "ready")
_VIEWS = {"local": 0, "full": 1, "grad": 2}
_PHASES = {"forward": 0, "backward": 1}
_PREFETCH = {"forward": 10, "backward": 11}
_RECOMPUTE = {"flags": 1}


@dataclass
class Param:
    """A parameter of a unit.

    Args:
        name: fully qualified.
        tensor: whole, contiguous, in memory of the host or of the context's device (where what wrote it has ended), anything that
            a state takes; None with shape and dtype: it begins as zero.
        shard_dim: dimension that is cut; negative counts from the end.
        frozen: it gets no gradient.
        replicate: it is not sharded, its gradients are summed over all ranks.
        aliases: further names of it.
    """

    name: str
    tensor: Any = None
    shape: Sequence[int] | None = None
    dtype: str | None = None
    shard_dim: int = 0
    frozen: bool = False
    replicate: bool = False
    aliases: Sequence[str] = field(default=())


class Box(NamedTuple):
    """Part of a parameter that a rank holds, padding excluded."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    global_shape: tuple[int, ...]


class UnitView:
    """Memory of the library as a tensor, by DLPack; it keeps the context alive. It lies on the device of the context, or with the
    host where the unit keeps it there (`offload`), and the library has written all of it: no stream has to wait. A view of whole
    parameters is of use until the state of the unit changes next. A gradient stays as it is when `Hsdp.zero_grads` has dropped it, for as long as a tensor
    of it lives: it is taken without a copy so."""

    def __init__(self, unit: Unit, view: int, index: int) -> None:
        self._unit, self._view, self._index = unit, view, index

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        if copy:
            raise BufferError("a copy is not made here; copy the tensor after the exchange")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the view lies {self._where()} and cannot be exported to another device")
        versioned = max_version is not None and max_version[0] >= 1
        return native.shw_py_hsdp_view_dlpack(self._unit._handle, self._view, self._index, versioned)

    def __dlpack_device__(self) -> tuple[int, int]:
        number: tuple[int, int] = native.shw_py_hsdp_view_device(self._unit._handle, self._view, self._index)
        return number

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """The same memory as a numpy array; BufferError for dtypes that numpy has not, and where it is not memory of the host."""
        import numpy
        if not is_host_number(self.__dlpack_device__()):
            raise BufferError(f"the view lies {self._where()}, and numpy reaches memory of the host only: take it by DLPack into a "
                              "framework that has this device")
        return numpy.from_dlpack(self)

    def _where(self) -> str:
        number, device = self.__dlpack_device__(), self._unit.owner.device
        return "in host memory" if device is None or is_host_number(number) else f"on device {device.name!r} {number}"


class Unit:
    """Made by `Hsdp.unit`. A life: add_params, seal (all ranks), then iterations of pre_forward, post_forward, pre_backward,
    add_grads, post_backward. A call that is not legal in the state of the unit is FailedPreconditionError naming both."""

    def __init__(self, handle: Any, name: str, owner: Hsdp) -> None:
        self._handle: Any = handle
        self.name = name
        self._owner = owner
        self._given: list[Any] = []  # whole parameters, until the unit is sealed
        self._taken: list[Any] = []  # gradients that are read where they lie

    def add_params(self, params: Sequence[Param]) -> None:
        """Adds all or none; they are numbered from 0 in the order in which they are added. InvalidArgumentError naming the
        parameter."""
        columns, rules = described(params)
        self._owner._hand_over()
        native.shw_py_hsdp_add_params(self._handle, columns, rules)
        self._given.append(columns)

    def seal(self) -> None:
        """Lays the unit out, compares that on all ranks, makes the shards and fills them. InvalidArgumentError on all ranks
        naming the unit and a rank that differs."""
        self._owner._wait(native.shw_hsdp_unit_seal, self._handle)
        self._given.clear()

    @property
    def owner(self) -> Hsdp:
        """The context that it was made by."""
        return self._owner

    @property
    def param_count(self) -> int:
        """Number of parameters."""
        return int(native.shw_hsdp_unit_param_count(self._handle))

    def param_name(self, index: int) -> str:
        """Name of a parameter of a sealed unit."""
        return str(native.shw_hsdp_unit_param_name(self._handle, index))

    @property
    def state(self) -> str:
        """"sharded", "gathering", "unsharded" or "secondary"."""
        return _STATES[native.shw_hsdp_unit_state(self._handle)]

    @property
    def grad_state(self) -> str:
        """How far its gradients are: "none", "local", "packed", "scattering", "partial", "replicating" or "ready"."""
        return _GRAD_STATES[native.shw_hsdp_unit_grad_state(self._handle)]

    def pre_forward(self, recompute: bool = False) -> None:
        """Waits for the whole parameters, and gathers what probably comes next. recompute: forward inside of backward."""
        self._owner._wait(native.shw_hsdp_unit_pre_forward, self._handle, _RECOMPUTE if recompute else None)

    def post_forward(self, recompute: bool = False) -> None:
        """Reshards as the policy says."""
        self._owner._wait(native.shw_hsdp_unit_post_forward, self._handle, _RECOMPUTE if recompute else None)

    def pre_backward(self) -> None:
        """Waits for the whole parameters, and gathers what ran before."""
        self._owner._wait(native.shw_hsdp_unit_pre_backward, self._handle)

    def post_backward(self) -> None:
        """Gradients were handed in: reduces and reshards as the settings say. A second call within one backward does nothing."""
        self._owner._wait(native.shw_hsdp_unit_post_backward, self._handle)

    def unshard(self, async_op: bool = False) -> Work | None:
        """Gathers; with `async_op` the gather is under way, and waiting for the work makes the unit "unsharded". The shards of
        all ranks stay as they are until then."""
        work = Work(self._owner._wait(native.shw_hsdp_unit_unshard, self._handle), self, self._owner._settle)
        if async_op:
            return work
        work.wait()
        return None

    def wait(self) -> None:
        """Waits for a gather under way; nothing where there is none."""
        self._owner._wait(native.shw_hsdp_unit_wait, self._handle)

    def reshard(self, phase: str = "backward") -> None:
        """After "forward" the policy decides; after "backward" always. A gather under way is waited for and dropped."""
        self._owner._wait(native.shw_hsdp_unit_reshard, self._handle, word("phase", phase, _PHASES))

    def add_grads(self, indices: Sequence[int], grads: Sequence[Any], take: bool = False) -> None:
        """Hands in gradients of whole parameters, all or none: a copy is added to what is there, or, with `take`, they are read
        where they lie and stay as they are until they were reduced. They are in memory of the host, which another device copies in
        any case, or of the context's device, where what wrote them has ended."""
        columns = native.shw_py_columns(False, None)
        for index, grad in zip(indices, grads, strict=True):
            _add_tensor(columns, f"gradient of parameter {index}", grad)
        self._owner._hand_over()
        native.shw_py_hsdp_add_grads(self._handle, list(indices), columns, take)
        if take:
            self._taken.append(columns)

    def reduce(self, async_op: bool = False) -> Work | None:
        """Packs what was handed in, reshards, and reduces into the gradient of the shard."""
        work = Work(self._owner._wait(native.shw_hsdp_unit_reduce, self._handle), self, self._owner._settle)
        if async_op:
            return work
        work.wait()
        self._taken.clear()
        return None

    def local(self, index: int) -> UnitView:
        """What this rank holds of a parameter; valid as long as the unit is."""
        return UnitView(self, _VIEWS["local"], index)

    def full(self, index: int) -> UnitView:
        """The whole parameter, only while "unsharded"."""
        return UnitView(self, _VIEWS["full"], index)

    def grad(self, index: int) -> UnitView:
        """The gradient of the shard; FailedPreconditionError where it is used and there is none."""
        return UnitView(self, _VIEWS["grad"], index)

    def views(self, view: str) -> list[tuple[int, tuple[int, ...], int, int]]:
        """(address, shape, dtype number, bytes) of "local", "full" or "grad" of all parameters in one call; address 0 = there is
        no gradient. Addresses of the context's device. For frameworks that make tensors of memory themselves."""
        found: list[tuple[int, tuple[int, ...], int, int]] = native.shw_py_hsdp_views(self._handle, word("view", view, _VIEWS))
        return found

    def set_memory(self, addresses: Sequence[int], sizes: Sequence[int], first: int = 0) -> None:
        """Gives memory of the context's device for the whole parameters from `first` on, to a unit made with `host_memory`; used
        whenever it is gathered from now on. While the unit is not "unsharded" the host may free or move it, and gives it anew
        before the next use."""
        native.shw_py_hsdp_set_memory(self._handle, first, list(addresses), list(sizes))

    def set(self, **values: Any) -> None:
        """Sets values of the unit, from now on and equally on all ranks: requires_gradient_sync, requires_all_reduce,
        reshard_after_forward, reshard_after_backward, reduce_op ("average", "sum"), divide_factor, unshard_in_backward,
        keep_unsharded, unused_policy ("zero", "skip")."""
        for name, value in values.items():
            for key, number in settings.keys_of(name, value):
                call = native.shw_hsdp_unit_set_f64 if key == settings.DIVIDE_FACTOR else native.shw_hsdp_unit_set_i64
                call(self._handle, key, number)

    def settings(self) -> UnitSettings:
        """All that it is set to now."""
        words = ("requires_gradient_sync", "requires_all_reduce", "reshard_after_backward", "reduce_op", "unshard_in_backward",
                 "keep_unsharded", "unused_policy")
        factor = native.shw_hsdp_unit_get_f64(self._handle, settings.DIVIDE_FACTOR)
        policy = settings.reshard_value(self.get("reshard_after_forward"), self.get("secondary_size"))
        return UnitSettings(reshard_after_forward=policy, divide_factor=factor, **{name: self.get(name) for name in words})

    def get(self, name: str) -> Any:
        """The value that `set` sets, but for divide_factor; of reshard_after_forward the number of the C interface. `settings` gives
        all as they are set."""
        return settings.value_of(name, native.shw_hsdp_unit_get_i64(self._handle, settings.switch_key(name)))

    def set_prefetch(self, units: Sequence[Unit], phase: str = "forward") -> None:
        """Units that are gathered ahead when this one runs, in place of what the last iteration foretells; none restores that."""
        native.shw_py_hsdp_set_prefetch(self._handle, word("phase", phase, _PREFETCH), [each._handle for each in units])

    def set_frozen(self, index: int, frozen: bool) -> None:
        """A parameter gets no gradients, or gets them again, from the next pre_forward on."""
        native.shw_hsdp_unit_set_frozen(self._handle, index, frozen)

    def box(self, index: int) -> Box:
        """What this rank holds of a parameter."""
        return Box(*native.shw_py_hsdp_box(self._handle, index))

    def stats(self) -> memory.Memory:
        """Memory that is and was held for this unit."""
        return memory.Memory.of(native.shw_hsdp_unit_stats(self._handle))

    def close(self) -> None:
        """Releases the unit; it goes on in its context. Twice is fine."""
        native.shw_py_close(self._handle)

    def _forget_taken(self) -> None:
        if self.grad_state in ("none", "ready", "partial"):
            self._taken.clear()


def described(params: Sequence[Param]) -> tuple[Any, tuple[Any, ...]]:
    """Parameters for the library: their tensors, and what is to become of them."""
    columns = native.shw_py_columns(False, None)
    aliases: list[bytes] = []
    ranges = [0]
    for each in params:
        _describe(columns, each)
        aliases += [name.encode() for name in each.aliases]
        ranges.append(len(aliases))
    dims = array("i", [each.shard_dim for each in params])
    flags = array("I", [_FROZEN * each.frozen + _REPLICATE * each.replicate for each in params])
    return columns, (dims, flags, aliases, ranges)


def _describe(columns: Any, param: Param) -> None:
    if param.tensor is not None:
        _add_tensor(columns, param.name, param.tensor)
        return
    if param.shape is None or param.dtype is None:
        raise InvalidArgumentError(f"parameter {param.name!r} has neither a tensor nor a shape and a dtype",
                                   {"parameter": param.name})
    native.shw_py_columns_declare(columns, param.name, dtype_number(param.dtype), tuple(param.shape))


def _add_tensor(columns: Any, name: str, tensor: Any) -> None:
    added, _ = native.shw_py_columns_collect(columns, {name: tensor}, b"", b"", None)
    if added != 1 and not import_leaf(columns, name.encode(), b"", tensor, None):
        raise InvalidArgumentError(f"{name!r} is of type {type(tensor).__qualname__}, which is no tensor", {"parameter": name})
