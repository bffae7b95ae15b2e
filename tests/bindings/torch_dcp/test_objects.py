# SPDX-License-Identifier: Apache-2.0
"""Byte objects beside torch's own save and load: what stock torch brings back comes back here without trust, a program's own
classes need `allow_types`, and nothing of a checkpoint runs."""
import argparse
import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import io
import logging
import os
import pathlib
import random
import types
import uuid

import numpy
import pytest
import torch
import torch.distributed.checkpoint as dcp
import torch.distributed.checkpoint.default_planner as original

import shardwright
import shardwright.torch.dcp.planner as ours
from shardwright import _pickle_notice


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Settings:
    rate: float = 0.1


class Foreign:
    def __init__(self, call):
        self.call = call

    def __reduce__(self):
        return self.call


RAN = []


def remember(*arguments):
    RAN.append(arguments)


KINDS = {
    "BytesIO": io.BytesIO(b"abc"), "array": numpy.arange(6.0).reshape(2, 3), "scalar": numpy.float32(1.5),
    "integer": numpy.int64(7), "bool": numpy.bool_(True), "numpy RNG": numpy.random.RandomState(1).get_state(),
    "generator": numpy.random.default_rng(1).bit_generator.state, "RNG": random.Random(1).getstate(),
    "path": pathlib.Path("/a/b"), "pure path": pathlib.PurePosixPath("a"), "deque": collections.deque([1, 2], maxlen=3),
    "frozenset": frozenset([1]), "set": {1}, "datetime": datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc),
    "date": datetime.date(2026, 1, 2), "timedelta": datetime.timedelta(1), "Decimal": decimal.Decimal("1.5"), "range": range(3),
    "slice": slice(1, 2), "UUID": uuid.UUID(int=3), "Namespace": argparse.Namespace(a=1), "simple": types.SimpleNamespace(a=1),
    "partial": functools.partial(int, base=2), "defaultdict": collections.defaultdict(list, a=[1]), "complex": 1j,
    "counter": collections.Counter("ab"), "ordered": collections.OrderedDict(a=1), "bytes": b"\xff", "tuple": (1, None, "x"),
    "mixed": (numpy.arange(2), torch.arange(3.0), torch.float16, torch.Size([2]), {"t": torch.ones(2, 2).t()}),
    "parameter": (pathlib.Path("p"), torch.nn.Parameter(torch.ones(2))), "shared": (slice(1), *[torch.arange(4)] * 2),
}


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, (numpy.ndarray, torch.Tensor)):
        return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    if isinstance(a, io.BytesIO):
        return a.getvalue() == b.getvalue()
    if isinstance(a, functools.partial):
        return (a.func, a.args, a.keywords) == (b.func, b.args, b.keywords)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a.items() == b.items() if isinstance(a, dict) and "t" in a and a.keys() == {"t"} and same(a["t"], b["t"]) else a == b


def loaded(path, names, planner):
    target = dict.fromkeys(names)
    dcp.load(target, checkpoint_id=path, planner=planner, no_dist=True)
    return target


@pytest.fixture
def fresh(monkeypatch):
    """A process that has told nothing yet."""
    monkeypatch.setattr(_pickle_notice, "_met", set())
    monkeypatch.setattr(_pickle_notice, "_told", set())


@pytest.mark.parametrize("saver", [original.DefaultSavePlanner, ours.DefaultSavePlanner])
def test_what_stock_torch_brings_back_comes_back_without_trust(saver, tmp_path):
    dcp.save({name: (value,) for name, value in KINDS.items()}, checkpoint_id=tmp_path / "c", planner=saver(), no_dist=True)
    theirs = loaded(tmp_path / "c", KINDS, original.DefaultLoadPlanner())
    found = loaded(tmp_path / "c", KINDS, ours.DefaultLoadPlanner())
    for name, value in KINDS.items():
        if name == "mixed":
            assert same(found[name][0][:4], value[:4]) and torch.equal(found[name][0][4]["t"], value[4]["t"])
        else:
            assert same(found[name], theirs[name]) and same(found[name], (value,)), name
    found["shared"][0][1][0] = 9
    assert found["shared"][0][2][0] == 9


def test_classes_of_the_program_are_named_at_save_and_allowed_at_load(tmp_path, caplog, fresh):
    state = {"a": (Color.RED,), "b": (Settings(2.0), numpy.arange(2)), "c": (Color.RED,), "plain": (1, numpy.float32(1))}
    with caplog.at_level(logging.WARNING, logger="shardwright"):
        for _ in range(2):
            dcp.save(state, checkpoint_id=tmp_path / "c", planner=ours.DefaultSavePlanner(), no_dist=True)
    told = [record.getMessage() for record in caplog.records if "allow_types" in record.getMessage()]
    assert len(told) == 2 and f"{__name__}.Color" in told[0] and f"{__name__}.Settings" in told[1]
    for allowed, missing in (((), "Color"), ((Color,), "Settings")):
        with pytest.raises(BaseException, match=rf"{missing}.*allow_types=.*trust_pickles=True"):
            loaded(tmp_path / "c", state, ours.DefaultLoadPlanner(allow_types=allowed))
    found = loaded(tmp_path / "c", state, ours.DefaultLoadPlanner(allow_types=[Color, Settings]))
    assert found["a"] == (Color.RED,) and found["b"][0] == Settings(2.0)
    with torch.serialization.safe_globals([Color, Settings]):
        assert loaded(tmp_path / "c", state, ours.DefaultLoadPlanner())["b"][0] == Settings(2.0)
    assert loaded(tmp_path / "c", state, ours.DefaultLoadPlanner(trust_pickles=True))["a"] == (Color.RED,)


def read(value, **options):
    """A stored object, read by the planner."""
    stream = io.BytesIO()
    torch.save(value, stream)
    return ours.DefaultLoadPlanner(**options)._object_of("o", io.BytesIO(stream.getvalue()))


def test_an_attack_is_refused_by_name_and_nothing_runs():
    rebuild = torch._utils
    attacks = [
        ("posix.system", (os.system, ("exit 1",))), (f"{__name__}.remember", (remember, (1,))),
        ("builtins.eval", (eval, ("1",))), ("builtins.getattr", (getattr, ({}, "get"))),
        ("torch._tensor._rebuild_from_type_v2", (torch._tensor._rebuild_from_type_v2, (getattr, torch.Tensor, ({}, "get"), {}))),
        ("torch._utils._rebuild_wrapper_subclass", (rebuild._rebuild_wrapper_subclass, (Foreign,))),
        ("torch.serialization.load", (torch.load, ("x",))), ("torch.hub.load", (torch.hub.load, ("x", "y"))),
        ("torch._utils._rebuild_tensor_v2", (rebuild._rebuild_tensor_v2, (1, 0, (1,), (1,), False, {}))),
        ("torch.Size", (torch.Size, (range(10**12),))), ("builtins.bytearray", (bytearray, (10**12,))),
    ]
    for name, call in attacks:
        with pytest.raises(ours.UntrustedObjectError, match="object o") as e:
            read((range(1), Foreign(call)))
        assert e.value.details["unsafe"] == name
        assert isinstance(e.value, shardwright.PermissionDeniedError) and isinstance(e.value, RuntimeError)
    assert RAN == []


def test_formats_that_torch_would_run_are_refused():
    class Module(torch.nn.Module):
        def forward(self, x):
            return x

    stream = io.BytesIO()
    torch.jit.save(torch.jit.script(Module()), stream)
    with pytest.raises(ours.UntrustedObjectError, match="__torch__"):
        ours.DefaultLoadPlanner()._object_of("o", io.BytesIO(stream.getvalue()))
    old = io.BytesIO()
    torch.save((range(3),), old, _use_new_zipfile_serialization=False)
    with pytest.raises(ours.UntrustedObjectError, match="before 1.6"):
        ours.DefaultLoadPlanner()._object_of("o", io.BytesIO(old.getvalue()))


def test_it_does_not_depend_on_the_switches_of_torch(monkeypatch):
    for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
        with monkeypatch.context() as changed:
            changed.setenv(name, "1")
            assert read((range(3),)) == (range(3),)
            with pytest.raises(ours.UntrustedObjectError):
                read(Foreign((remember, ())))


def test_damage_is_told_from_what_is_unsafe():
    stream = io.BytesIO()
    torch.save((range(3), "marker"), stream)
    content = stream.getvalue()
    for bad in (content[:40], content.replace(b"marker", b"m\xff\xff\xff\xffr"), b""):
        with pytest.raises(ours.DamagedObjectError, match="the object o cannot be read") as e:
            ours.DefaultLoadPlanner()._object_of("o", io.BytesIO(bad))
        assert isinstance(e.value, shardwright.DataLossError) and isinstance(e.value, RuntimeError)
    with pytest.raises(shardwright.InvalidArgumentError, match="allow_types"):
        read(1, allow_types=["Color"])
