# SPDX-License-Identifier: Apache-2.0
"""Pickles that are read without trust: what comes back, what is refused and by which name, and that nothing of a file runs."""
import argparse
import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import operator
import os
import pathlib
import pickle
import random
import types
import uuid

import numpy
import pytest

from shardwright import DataLossError, InvalidArgumentError, PermissionDeniedError, _pickle_notice, _pickles

_core = numpy._core if hasattr(numpy, "_core") else numpy.core
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)
PARTIAL = functools.partial(int, base=2)


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Settings:
    rate: float = 0.1
    color: Color = Color.RED

    class Inner(enum.Enum):
        ONE = 1


class Slotted:
    __slots__ = ("a", "b")


class Counted(dict):
    def __setstate__(self, state):
        self.told = state


Pair = collections.namedtuple("Pair", "a b")


def plain_values():
    """Values of all kinds that need no trust."""
    return [
        None, True, 1, -2**70, 2.5, float("inf"), "x\u00e9", b"", b"ab\xff", bytearray(b"x"), complex(1, 2), [1, [2]], (),
        (1, 2, 3, 4), {"a": {1, 2}}, set(), frozenset([1]), range(3), slice(1, None, 2), Ellipsis, NotImplemented, int, type(None),
        collections.deque([1], maxlen=3), collections.deque("ab"), collections.OrderedDict(a=1), collections.Counter("ab"),
        collections.defaultdict(list, a=[1]), array.array("I", [1, 2]), array.array("d"), decimal.Decimal("1.50"),
        fractions.Fraction(1, 3), datetime.date(2026, 1, 2), datetime.time(1, 2, 3), datetime.timedelta(1, 2, 3),
        datetime.datetime(2026, 1, 2, 3, 4, 5, 6), datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc),
        datetime.timezone(datetime.timedelta(hours=2), "x"), pathlib.Path("/a/b"), pathlib.PurePosixPath("a"),
        pathlib.PureWindowsPath("c:/a"), uuid.UUID(int=7), uuid.uuid1(), argparse.Namespace(a=1), types.SimpleNamespace(a=[1]),
        random.getstate(), numpy.random.default_rng(1).bit_generator.state]


def numpy_values():
    return [
        numpy.arange(6, dtype="i4").reshape(2, 3), numpy.arange(3, dtype=">f8"), numpy.zeros((2, 0)), numpy.array(3),
        numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)), numpy.array([True]), numpy.array(["ab", "c"]),
        numpy.array([b"ab"]), numpy.array([1 + 2j]), numpy.array(["2020"], "M8[D]"), numpy.array([3], "m8[25us]"),
        numpy.array([("a", 1)], dtype=[("x", "U3"), ("y", "f4")]), numpy.zeros(2, numpy.dtype([("a", "i1"), ("b", "f8")], align=True)),
        numpy.float32(2), numpy.int8(3), numpy.bool_(True), numpy.str_("abc"), numpy.bytes_(b"a"), numpy.complex64(1j),
        numpy.datetime64("2020-01-01", "ns"), numpy.timedelta64(3, "s"), numpy.dtype("f4"), numpy.dtype(">i8"), numpy.float32]


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, numpy.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes("A") == b.tobytes("A") and b.flags.writeable
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_runs_nothing_comes_back_as_pickle_gives_it(protocol):
    for value in [*plain_values(), *numpy_values(), {"all": plain_values()}, numpy.random.RandomState(3).get_state()]:
        data = pickle.dumps(value, protocol)
        assert same(pickle.loads(data), _pickles.read(data, "o")), value
        assert _pickle_notice.unsafe_names(data) == []


@pytest.mark.parametrize("protocol", [0, 1])
def test_the_oldest_protocols_are_read_too(protocol):
    for value in [None, True, 7, 2**70, 1.5, "x", [1, (2, 3)], {"a": 1}, b"\xff", numpy.arange(3), datetime.date(2026, 1, 2)]:
        assert same(value, _pickles.read(pickle.dumps(value, protocol), "o"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_streams_and_partials_come_back(protocol):
    stream, text = io.BytesIO(b"abc"), io.StringIO("abc")
    stream.seek(2)
    found = _pickles.read(pickle.dumps({"b": stream, "t": text, "p": PARTIAL, "again": stream}, protocol), "o")
    assert found["b"].getvalue() == b"abc" and found["b"].tell() == 2 and found["again"] is found["b"]
    assert found["t"].getvalue() == "abc" and found["p"]("101") == 5
    assert found["p"].func is int and not found["p"].args


def test_a_value_that_holds_itself_comes_back():
    value = {"a": []}
    value["a"].append(value)
    found = _pickles.read(pickle.dumps(value), "o")
    assert found["a"][0] is found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_classes_of_the_caller_need_to_be_allowed_and_are_named(protocol):
    value = [Color.RED, Level.HIGH, Settings(2.0), Settings.Inner.ONE, Pair(1, 2)]
    data = pickle.dumps(value, protocol)
    kinds = [Color, Level, Settings, Settings.Inner, Pair]
    assert _pickles.read(data, "o", allow_types=kinds) == value
    assert _pickles.read(data, "o", trusted=True) == value
    for missing in kinds:
        rest = [kind for kind in kinds if kind is not missing]
        with pytest.raises(PermissionDeniedError, match=r"object o is .* uses .*; pass allow_types=.* or trust_pickle=True") as e:
            _pickles.read(data, "o", allow_types=rest)
        assert e.value.details["unsafe"] in (f"{__name__}.{missing.__qualname__}", "builtins.getattr")
    assert _pickle_notice.unsafe_names(pickle.dumps([Color.RED, Settings(1.0)], protocol)) == [
        f"{__name__}.Color", f"{__name__}.Settings"]


def test_allowed_classes_take_their_state_as_python_gives_it():
    slotted, counted = Slotted(), Counted(a=1)
    slotted.a = 5
    counted.x = 1
    found = _pickles.read(pickle.dumps([slotted, counted]), "o", allow_types=[Slotted, Counted])
    assert found[0].a == 5 and not hasattr(found[0], "b")
    assert found[1] == {"a": 1} and found[1].told == {"x": 1}
    with pytest.raises(InvalidArgumentError, match="lists classes and functions"):
        _pickles.read(b"N.", "o", allow_types=["Color"])


# ---- attacks ----

RAN = []


def remember(*arguments):
    RAN.append(arguments)


class Says:
    """Pickles as the call of a function."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


class SubArray(numpy.ndarray):
    def __setstate__(self, state):
        remember(state)


ATTACKS = {
    "posix.system": Says(os.system, ("exit 1",)), "builtins.eval": Says(eval, ("1",)), "builtins.exec": Says(exec, ("1",)),
    "builtins.__import__": Says(getattr, (Says(__import__, ("os",)), "system")), f"{__name__}.remember": Says(remember, (1,)),
    "getattr of a class": Says(getattr, (int, "__subclasses__")), "getattr of a value": Says(getattr, ("x", "format")),
    "getattr of a method": Says(getattr, (dict, "fromkeys")),
    "a partial of a call": functools.partial(os.system, "exit 1"), "partial(type)": functools.partial(type, "X"),
    "partial(getattr)": functools.partial(getattr, {}),
    "a call of a partial": Says(PARTIAL, ("1",)), "operator.attrgetter": operator.attrgetter("a"),
    "operator.methodcaller": operator.methodcaller("a"), "a codec": Says(__import__("codecs").encode, (b"x", "zlib")),
    "a new type": Says(type, ("X", (), {})), "a factory": Says(collections.defaultdict, (os.getcwd,)),
    "a path's method": Says(pathlib.Path.touch, (pathlib.Path("x"),)), "numpy.load": Says(numpy.load, ("x",)),
    "an array of objects": numpy.array([Says(remember, (1,))], dtype=object), "a subclass of arrays": numpy.ones(2).view(SubArray),
    "a matrix": numpy.ones((1, 1)).view(numpy.matrix), "a file": Says(numpy.fromfile, ("/etc/passwd",)),
    "an object scalar": Says(_core.multiarray.scalar, (numpy.dtype("f8"), 1)), "a state of a list": Says(list, (), {"a": 1}),
    "a state of a deque": Says(collections.deque, (), {"a": 1}),
}
TOO_MUCH = {
    "frozenset": Says(frozenset, (range(10**12),)), "deque": Says(collections.deque, (range(10**12),)),
    "bytearray": Says(bytearray, (10**12,)), "bytes": Says(bytes, (10**12,)), "fraction": Says(fractions.Fraction, ("1e999999999",)),
    "array": Says(_core.multiarray._reconstruct, (numpy.ndarray, (10**12,), b"b")),
    "filled": Says(_core.multiarray._reconstruct, (numpy.ndarray, (0,), b"b"),
                   (1, (10**12,), numpy.dtype("f8"), False, b"12345678")),
    "codes": Says(array.array, ("d", range(10**12))),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("attack", ATTACKS.keys() | TOO_MUCH.keys())
def test_what_would_run_code_or_fill_memory_is_refused(attack, protocol):
    data = pickle.dumps({"before": 1, "it": [(ATTACKS | TOO_MUCH)[attack]]}, protocol)
    with pytest.raises(PermissionDeniedError) as e:
        _pickles.read(data, "o")
    if "." in attack:
        assert e.value.details["unsafe"] == attack
    assert _pickle_notice.unsafe_names(data)
    assert RAN == []


BY_HAND = {
    "a dotted name": b"\x80\x04\x8c\x08datetime\x8c\x0cdatetime.now\x93)R.",
    "a dotted name in an allowed module": b"\x80\x04\x8c\x07pathlib\x8c\x0cos.path.join\x93)R.",
    "a name with a space": b"cdatetime\ndatetime now\n)R.",
    "an extension": b"\x82\x01.", "an old instance": b"(iposix\nsystem\n.", "an old object": b"(cbuiltins\ndict\no.",
    "an outside reference": b"Pabc\n.", "an outside buffer": b"\x80\x05\x97.",
    "a call of a text": b"U\x01xU\x01x\x85R.", "a call of a mark": b"((tR.",
    "items for a text": b"U\x01x(I1\ne.", "items for a list": b"](I1\nI2\nu.", "a set of a list": b"]\x80\x04(I1\n\x90.",
    "a state of a class": b"cdatetime\ndatetime\n}b.", "named arguments": b"cdatetime\ndatetime\n)}\x92.",
    "a dropped call": b"cposix\nsystem\n(U\x01xtR0N.",
}
BROKEN = {
    "no end": b"N", "nothing": b"", "an unknown operation": b"\xff.", "an empty stack": b".", "a lost mark": b"N0e.",
    "a missing memo": b"h\x05.", "an odd dict": b"(I1\nd.", "short bytes": b"C\x09abc.", "a bad text": pickle.dumps("xyz", 4).replace(b"xyz", b"\xffyz"),
    "an unhashable key": b"}]Ns.", "arguments that are none": b"cbuiltins\nset\n]R.",
}


@pytest.mark.parametrize("name", BY_HAND)
def test_programs_of_the_pickle_language_are_refused(name):
    with pytest.raises(PermissionDeniedError):
        _pickles.read(BY_HAND[name], "o")


@pytest.mark.parametrize("name", BROKEN)
def test_broken_pickles_are_damage(name):
    with pytest.raises(DataLossError, match="object o is no readable pickle"):
        _pickles.read(BROKEN[name], "o")


def dtype_with(state, text="V8"):
    return Says(numpy.dtype, (text, False, True), state)


WRONG_DTYPES = [
    dtype_with((3, "|", None, ("a",), {"a": (numpy.dtype("f8"), 4)}, 8, 1, 16)),  # beyond its end
    dtype_with((3, "|", None, ("a",), {"a": (numpy.dtype("f8"), 0)}, 8, 1, 1)),  # other flags
    dtype_with((3, "|", None, ("a",), {"a": ("O", 0)}, 8, 1, 16)), dtype_with((3, "|", None, None, None, 16, 1, 0)),
    dtype_with((3, "|", (numpy.dtype("f4"), (2,)), None, None, 8, 1, 0)), dtype_with((3, "<", None, None, None, 4, 4, 0), "f8"),
    dtype_with((3, "<", None, None, None, -1, -1, 63), "f8"), dtype_with((4, "<", None, None, None, -1, -1, 0, ({}, ("x", 1))), "M8"),
    dtype_with(("x",), "f8"), Says(numpy.dtype, ("f8,O", False, True)), Says(numpy.dtype, ([("a", "O")],)),
]


@pytest.mark.parametrize("number", range(len(WRONG_DTYPES)))
def test_dtypes_that_numpy_does_not_write_are_refused(number):
    with pytest.raises((PermissionDeniedError, DataLossError)):
        _pickles.read(pickle.dumps(WRONG_DTYPES[number]), "o")


def test_a_dtype_does_not_change_under_an_array():
    """The memo lets a program reach a dtype again after an array was made of it."""
    made = b"cnumpy\ndtype\n(S'V8'\nI00\nI01\ntRp1\n0"
    array = (b"c" + _core.multiarray._reconstruct.__module__.encode() + b"\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntRp2\n"
             b"(I1\n(I1\ntg1\nI00\nC\x0812345678tb0")
    assert _pickles.read(made + array + b"g2\n.", "o").tobytes() == b"12345678"
    longer = b"g1\n(I3\nS'|'\nNNNI1000000\nI1\nI0\ntb0"
    assert pickle.loads(made + longer + b"g1\n.").itemsize == 1000000, "pickle lets it change"
    with pytest.raises(PermissionDeniedError, match="dtype"):
        _pickles.read(made + array + longer + b"g2\n.", "o")


def test_numpys_own_dtypes_stay_as_they_are():
    _pickles.read(pickle.dumps(numpy.arange(2, dtype=">f4")), "o")
    assert numpy.dtype("f4").isnative and numpy.dtype("f4").itemsize == 4


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the reader of old text operations
@pytest.mark.parametrize("seed", range(20))
def test_damaged_pickles_end_in_an_error_or_a_value(seed):
    source = random.Random(seed)
    kept = [pickle.dumps(value, protocol) for value in [plain_values(), numpy_values()[:12], Says(remember, (1,))]
            for protocol in (2, 4)]
    for _ in range(150):
        data = bytearray(source.choice(kept))
        for _ in range(source.randint(1, 4)):
            data[source.randrange(len(data))] = source.randrange(256)
        try:
            _pickles.read(bytes(data), "o")
        except (PermissionDeniedError, DataLossError):
            pass
    assert RAN == []


def test_bytes_that_are_no_pickle_have_no_names():
    assert _pickle_notice.unsafe_names(b"cposix\nsystem\n") == ["posix.system"]
    assert _pickle_notice.unsafe_names(b"\xff\xff") == []
    assert _pickle_notice.unsafe_names(pickle.dumps([functools.partial(remember, 1), Color.RED, Color.RED])) == [
        f"{__name__}.remember", f"{__name__}.Color"]
