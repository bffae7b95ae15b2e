# SPDX-License-Identifier: Apache-2.0
"""References and foreign memory: nothing leaks, deleters run once, read-only targets are refused."""
import ctypes
import gc
import sys
import threading

import numpy as np
import pytest
import shardwright

ROUNDS, SLACK = 30, 40


class Producer:
    """A DLPack producer, old or versioned, that counts calls of its deleter and the threads they came from."""

    def __init__(self, versioned=True, flags=0, device=1, major=1, code=2, bits=32):
        self.versioned, self.flags, self.deleted, self.device = versioned, flags, [], device
        self.data = (ctypes.c_float * 4)(1, 2, 3, 4)
        self.shape, self.strides = (ctypes.c_int64 * 1)(4), (ctypes.c_int64 * 1)(1)
        self.managed = self._managed(major, code, bits)

    def _managed(self, major, code, bits):
        class Tensor(ctypes.Structure):
            _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]

        deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

        class Managed(ctypes.Structure):
            _fields_ = ([("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
                         ("deleter", deleter), ("flags", ctypes.c_uint64), ("tensor", Tensor)] if self.versioned else
                        [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", deleter)])

        made = Managed()
        made.tensor = Tensor(ctypes.addressof(self.data), (ctypes.c_int32 * 2)(self.device, 0), 1, code, bits, 1,
                             ctypes.addressof(self.shape), ctypes.addressof(self.strides), 0)
        made.deleter = deleter(lambda _: self.deleted.append(threading.get_ident()))
        if self.versioned:
            made.major, made.minor, made.flags = major, 0, self.flags
        return made

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, **keywords):
        if not self.versioned and keywords:
            raise TypeError("this producer is old")
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.name = b"dltensor_versioned" if self.versioned else b"dltensor"
        self.capsule = new(ctypes.addressof(self.managed), self.name, None)
        return self.capsule


def capsule_name(capsule):
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return get(capsule)


@pytest.mark.parametrize("versioned", [True, False])
def test_a_dlpack_deleter_runs_once_on_a_host_thread(versioned, tmp_path):
    producer = Producer(versioned)
    state = shardwright.State({"w": producer})
    assert capsule_name(producer.capsule).startswith(b"used_dltensor") and producer.deleted == []
    shardwright.save(state, tmp_path / "p")
    assert shardwright.load(tmp_path / "p")["w"].numpy().tolist() == [1, 2, 3, 4]
    del state
    gc.collect()
    assert producer.deleted == [threading.get_ident()]


def test_a_refused_dlpack_tensor_stays_with_its_producer(tmp_path):
    cases = [(Producer(major=2), shardwright.UnimplementedError), (Producer(code=3), shardwright.UnimplementedError),
             (Producer(code=9, bits=99), shardwright.UnimplementedError)]
    for producer, error in cases:
        with pytest.raises(error):
            shardwright.save({"w": producer}, tmp_path / "p")
        assert producer.deleted == [] and capsule_name(producer.capsule) == b"dltensor_versioned"


def test_a_dlpack_tensor_on_a_device_is_refused_clearly(tmp_path):
    with pytest.raises(shardwright.ShardwrightError, match="cuda:0"):
        shardwright.save({"w": Producer(device=2)}, tmp_path / "p")


def test_read_only_targets_are_refused_before_anything_is_read(tmp_path):
    shardwright.save({"a": np.ones(4, "f4"), "w": np.ones(4, "f4")}, tmp_path / "p")
    frozen = np.zeros(4, "f4")
    frozen.flags.writeable = False
    for target in (frozen, Producer(flags=1), np.broadcast_to(np.zeros(1, "f4"), (4,))):
        first = np.zeros(4, "f4")
        with pytest.raises(shardwright.InvalidArgumentError, match="w"):
            shardwright.load(tmp_path / "p", into={"a": first, "w": target})
        assert first.tolist() == [0] * 4
    assert shardwright.save({"w": frozen}, tmp_path / "q").tensors == 1


def test_exported_tensors_live_on_after_their_owner(tmp_path):
    shardwright.save({"w": np.arange(4.0)}, tmp_path / "p")
    arrays = [np.from_dlpack(shardwright.load(tmp_path / "p")["w"]) for _ in range(10)]
    gc.collect()
    assert all(a.tolist() == [0, 1, 2, 3] for a in arrays)


def leaks(work):
    """Growth of allocated blocks over many rounds, after a warm-up."""
    for _ in range(5):
        work()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(ROUNDS):
        work()
    gc.collect()
    return sys.getallocatedblocks() - before


def test_calls_that_succeed_leak_nothing(tmp_path):
    state = {"w": np.ones(10), "b": bytearray(4), "n": {"x": [1, {"y": np.ones(2)}]}, "o": b"x"}

    def work():
        shardwright.save(state, tmp_path / "p", metadata={"a": "b"}, kind=[("*", "replicated")])
        tree = shardwright.load(tmp_path / "p", strict=[("*", "error", "report", "error")])
        shardwright.load(tmp_path / "p", into=state)
        with shardwright.open(tmp_path / "p") as c:
            c["w"][2:5].sum()
            c.digest()
            c.info()
            c.objects()
            c.verify(deep=True).to_dict()
        np.from_dlpack(tree["w"]).sum()
        shardwright.save_async(state, tmp_path / "q").result().to_dict()
        shardwright.Layout((2,), [0], names=["x"]).boxes((4,), 1)
        shardwright.Layout((2,), tensor_map=((0, -1), -1)).pieces((4, 3), 1)
        shardwright.layout.GridShard.at((4, 6), (0, 1, 2), flat_range=(3, 9)).pieces()

    assert leaks(work) < SLACK


def test_calls_that_fail_leak_nothing(tmp_path):
    shardwright.save({"w": np.ones(4)}, tmp_path / "p")

    def fails(function):
        try:
            function()
        except (shardwright.ShardwrightError, TypeError):
            return
        raise AssertionError("it did not fail")

    def work():
        fails(lambda: shardwright.open(tmp_path / "nothing"))
        fails(lambda: shardwright.save({"w": {1, 2}}, tmp_path / "p"))
        fails(lambda: shardwright.save({"w": np.ones(2), "x\ud800": np.ones(1)}, tmp_path / "p"))
        fails(lambda: shardwright.load(tmp_path / "p", into={"w": np.ones(5)}))
        fails(lambda: shardwright.load(tmp_path / "p", into={"v": np.ones(4), "b": bytearray(3)}))
        fails(lambda: shardwright.save({"w": np.ones(2)}, tmp_path / "p", owner="nobody"))
        fails(lambda: shardwright.validate_plan(b"nonsense"))
        fails(lambda: shardwright.Plan.from_bytes(b""))
        fails(lambda: shardwright.Layout((2,), [("strided_shard", 0, 0)]))
        fails(lambda: shardwright.Layout((2,), tensor_map=(0, (0, -1))))
        fails(lambda: shardwright.layout.GridShard((2,), (4,), (3,)).pieces())
        fails(lambda: shardwright.layout.flat_entry_pieces((4, 6), (1, 1, 23), ((0, 0, 0), (1, 1, 1))))
        fails(lambda: shardwright.State({"w": Producer(major=7)}))
        fails(lambda: shardwright.zeros("float99", (1,)))

    assert leaks(work) < SLACK


def test_wrong_handles_are_type_errors():
    from shardwright._library import native
    state = native.shw_state_create()
    for wrong in (5, "text", object(), state):
        with pytest.raises(TypeError):
            native.shw_checkpoint_format(wrong)
