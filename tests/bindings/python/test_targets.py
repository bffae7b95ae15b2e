# SPDX-License-Identifier: Apache-2.0
"""What may be saved, and what a load puts into the values of its target that are no tensors."""
import decimal
import pickle

import numpy
import pytest
import shardwright
from shardwright import _pickle_notice


class Held:
    """A value that only a pickle can hold."""

    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return isinstance(other, Held) and other.text == self.text


HELD = f"{__name__}.Held"
STORED = {"o": Held("kept"), "blob": b"bytes", "w": numpy.arange(3.0)}


@pytest.fixture
def path(tmp_path):
    shardwright.save(STORED, tmp_path / "p", objects="pickle")
    return tmp_path / "p"


@pytest.mark.parametrize("call", [
    lambda state, path: shardwright.save(state, path), lambda state, path: shardwright.save_async(state, path),
    lambda state, path: shardwright.SavePlanner(state, path=path), lambda state, _: shardwright.State(state),
    lambda state, _: shardwright.State.from_dict(state)])
@pytest.mark.parametrize("state", [None, [("w", 1)], "w", 3, {"w"}, numpy.zeros(2)])
def test_a_save_of_what_is_no_mapping_is_refused_and_keeps_what_was_there(path, call, state):
    with pytest.raises(shardwright.InvalidArgumentError, match=type(state).__name__):
        call(state, path)
    with shardwright.open(path) as c:
        assert list(c.keys()) == ["w"]


@pytest.mark.parametrize("target", [[("w", 1)], "w", 3])
def test_a_target_that_is_no_mapping_is_refused(path, target):
    for call in (shardwright.load, shardwright.load_async):
        with pytest.raises(shardwright.InvalidArgumentError, match="mapping"):
            call(path, target)


def test_a_state_that_was_made_to_be_saved_is_not_filled(path):
    """It may hold memory that nobody may write into."""
    frozen = numpy.zeros(3)
    frozen.flags.writeable = False
    for call in (shardwright.load, shardwright.load_async):
        with pytest.raises(shardwright.InvalidArgumentError, match="writable=True"):
            call(path, shardwright.State({"w": frozen}))
    assert frozen.tolist() == [0, 0, 0]


@pytest.mark.parametrize("slot", [None, 0, "text", Held("other"), {7}, decimal.Decimal(1), b""])
@pytest.mark.parametrize("background", [False, True])
def test_a_trusted_pickle_comes_back_whatever_stands_in_the_target(path, slot, background):
    into = {"o": slot, "w": numpy.zeros(3)}
    if background:
        shardwright.load_async(path, into, trust_pickle=True).result()
    else:
        shardwright.load(path, into, trust_pickle=True)
    assert into["o"] == Held("kept") and into["w"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("slot", [None, 0, "text", Held("other"), {7}])
def test_a_pickle_that_is_not_trusted_is_refused_by_name(path, slot):
    into = {"o": slot, "blob": None}
    with pytest.raises(shardwright.PermissionDeniedError,
                       match=rf"o is a pickle that uses {HELD}.*allow_types=.*trust_pickle=True") as caught:
        shardwright.load(path, into)
    assert caught.value.details["tensor"] == "o" and caught.value.details["unsafe"] == HELD
    assert into == {"o": slot, "blob": None}


@pytest.mark.parametrize("background", [False, True])
def test_a_class_that_is_allowed_comes_back_without_trust(path, background):
    into = {"o": None}
    if background:
        shardwright.load_async(path, into, allow_types=iter([Held])).result()
    else:
        shardwright.load(path, into, allow_types=iter([Held]))
    assert into["o"] == Held("kept")
    assert shardwright.load(path, allow_types=[Held])["o"] == Held("kept")
    with shardwright.open(path) as c:
        assert c.object("o", allow_types=[Held]) == c.objects(allow_types=iter([Held]))["o"] == Held("kept")
        planner = shardwright.LoadPlanner(c, into, allow_types=[Held])
        into["o"] = None
        planner.execute(planner.local_plan())
        assert into["o"] == Held("kept")
        for refused in (lambda: c.object("o", allow_types=[]), lambda: shardwright.load(path, allow_types=[])):
            with pytest.raises(shardwright.PermissionDeniedError, match=HELD):
                refused()


def test_what_allow_types_may_list_is_looked_at_before_anything_is_read(tmp_path):
    for call in (shardwright.load, lambda *a, **o: shardwright.load(*a[:1], **o), shardwright.load_async):
        with pytest.raises(shardwright.InvalidArgumentError, match="allow_types lists classes"):
            call(tmp_path / "nothing", {"o": None}, allow_types=["Held"])


def test_harmless_kinds_need_neither_trust_nor_a_list(tmp_path):
    value = {1, 2, decimal.Decimal("1.5"), numpy.float32(2.5)}
    shardwright.save({"o": value}, tmp_path / "p", objects="pickle")
    into = {"o": None}
    shardwright.load(tmp_path / "p", into)
    assert into["o"] == value == shardwright.load(tmp_path / "p", allow_types=())["o"]


def test_a_save_names_once_what_a_load_will_need(tmp_path, caplog):
    class Once:
        """A class that no other test saves."""

    Once.__qualname__ = "Once"
    globals()["Once"] = Once
    for name in ("p", "q"):
        shardwright.save({"o": Once(), "h": {7}}, tmp_path / name, objects="pickle")
    told = [record.getMessage() for record in caplog.records if "allow_types" in record.getMessage()]
    assert len(told) == 1 and f"{__name__}.Once" in told[0] and told[0].startswith("o and others")


def test_a_pickle_is_given_as_bytes_where_bytes_were_asked_for(path):
    into = {"o": b"", "blob": None}
    shardwright.load(path, into)
    assert pickle.loads(into["o"]) == Held("kept") and into["blob"] == b"bytes"
    assert pickle.loads(shardwright.load(path)["o"]) == Held("kept")


def test_a_planner_follows_the_same_rule(path):
    with shardwright.open(path) as c:
        into = {"o": {7}}
        planner = shardwright.LoadPlanner(c, into, trust_pickle=True)
        planner.execute(planner.local_plan())
        assert into["o"] == Held("kept")
        planner = shardwright.LoadPlanner(c, {"o": {7}})
        with pytest.raises(shardwright.PermissionDeniedError, match="trust_pickle"):
            planner.execute(planner.local_plan())


def test_a_pickle_that_cannot_be_read_is_data_loss(tmp_path, monkeypatch):
    monkeypatch.setattr(_pickle_notice, "write", lambda *_: b"\x80\x04no pickle")
    shardwright.save({"o": {7}}, tmp_path / "p", objects="pickle")
    for options in ({"trust_pickle": True}, {"into": {"o": None}}):
        with pytest.raises(shardwright.DataLossError, match="o is no readable pickle"):
            shardwright.load(tmp_path / "p", **options)


def test_a_target_with_such_values_cannot_be_saved(tmp_path, path):
    target = shardwright.State({"o": {7}}, writable=True)
    with pytest.raises(shardwright.InvalidArgumentError, match="o is a builtins.set"):
        shardwright.save(target, tmp_path / "q")


def test_a_trace_is_written_where_it_was_asked_for(tmp_path):
    for name, call in (("save", lambda trace: shardwright.save(STORED | {"o": 1}, tmp_path / "t", trace_path=trace)),
                       ("load", lambda trace: shardwright.load(tmp_path / "t", trace_path=trace)),
                       ("save_async", lambda trace: shardwright.save_async({}, tmp_path / "e", trace_path=trace).result())):
        for kind in (str, lambda p: p):
            trace = tmp_path / f"{name} \N{GREEK SMALL LETTER ALPHA}.json"
            call(kind(trace))
            assert trace.read_text(encoding="utf-8").lstrip().startswith(("{", "["))
            trace.unlink()
    with pytest.raises(shardwright.InvalidArgumentError, match="trace_path holds a NUL"):
        shardwright.save({}, tmp_path / "e", trace_path="a\0b")


class EmptyStorage:
    """A storage of the host in which nothing is."""

    name = "empty"

    def open(self, *_):
        raise FileNotFoundError

    stat = list = remove = open


def test_every_object_can_be_shown_when_it_is_closed(path):
    checkpoint = shardwright.open(path)
    state = shardwright.State({"w": numpy.zeros(3)}, writable=True)
    stored = checkpoint["w"]
    closed = [shardwright.SavePlanner(state), shardwright.LoadPlanner(checkpoint, state), checkpoint,
              shardwright.save_async({}, path.parent / "q"), shardwright.MemoryStorage(),
              shardwright.CustomStorage(EmptyStorage()), shardwright.Context(), *shardwright.thread_collectives(1)]
    for thing in closed:
        open_text = repr(thing)
        thing.close()
        assert type(thing).__name__ in open_text and type(thing).__name__ in repr(thing)
    assert "closed" in repr(checkpoint) and "closed" in repr(closed[4]) and "StoredTensor" in repr(stored)
    closing = [kind for kind in vars(shardwright).values() if isinstance(kind, type) and hasattr(kind, "close")]
    assert {kind.__repr__ for kind in closing} <= {type(thing).__repr__ for thing in closed}, "a class was not tried"
