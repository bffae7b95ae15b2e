# SPDX-License-Identifier: Apache-2.0
"""Stored tensors as sources of numpy and of other frameworks: the values, and how often the storage is read for them."""
import sys
import tracemalloc

import numpy as np
import pytest
import shardwright
from host_storage import DictObject, DictStorage

ROWS = np.arange(1000 * 3, dtype="f4").reshape(1000, 3)
STATE = {"rows": ROWS, "scalar": np.array(7, dtype="i8"), "empty": np.zeros((0, 3), dtype="f4"),
         "wide": np.arange(6, dtype="u1").reshape(2, 3)}


class CountingObject(DictObject):
    def read_at(self, offset, data):
        self.storage.reads += 1
        return super().read_at(offset, data)


class CountingStorage(DictStorage):
    reads = 0

    def open(self, key, mode):
        opened = super().open(key, mode)
        opened.__class__ = CountingObject
        return opened


@pytest.fixture
def stored():
    """Opens the checkpoint; the storage counts from then on, indexes having been read."""
    counting = CountingStorage()
    shardwright.save(STATE, "p", storage=counting)
    with shardwright.open("p", storage=counting) as checkpoint:
        checkpoint["scalar"].numpy()
        counting.reads = 0
        yield checkpoint, counting


WHOLE = {
    "asarray": np.asarray,
    "array": np.array,
    "asarray_of_dtype": lambda t: np.asarray(t, dtype="f8"),
    "stack": lambda t: np.stack([t])[0],
    "arithmetic": lambda t: t + np.zeros(3, dtype="f4"),
    "from_dlpack": np.from_dlpack,
    "list": lambda t: np.stack(list(t)),
    "comprehension": lambda t: np.stack([row for row in t]),
    "sum": lambda t: np.stack([np.broadcast_to(sum(t), (3,))] * 1000),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_tensor_is_one_read(stored, name):
    checkpoint, counting = stored
    found = WHOLE[name](checkpoint["rows"])
    expected = np.broadcast_to(ROWS.sum(axis=0), ROWS.shape) if name == "sum" else ROWS
    assert np.allclose(found, expected) and counting.reads == 1


def test_torch_takes_a_whole_tensor_in_one_read(stored):
    torch = pytest.importorskip("torch")
    checkpoint, counting = stored
    for take in (torch.as_tensor, torch.tensor, torch.asarray, torch.from_dlpack):
        counting.reads = 0
        assert take(checkpoint["rows"]).equal(torch.from_numpy(ROWS)) and counting.reads == 1


def test_iteration_reads_blocks_of_rows(stored, monkeypatch):
    checkpoint, counting = stored
    monkeypatch.setattr(shardwright.checkpoint, "_ITERATED_BYTES", 100 * 12)
    assert [row.tolist() for row in checkpoint["rows"]] == ROWS.tolist()
    assert counting.reads == 10
    assert list(checkpoint["empty"]) == [] and [int(x) for x in checkpoint["wide"][1]] == [3, 4, 5]
    with pytest.raises(TypeError, match="no length"):
        iter(checkpoint["scalar"])


def test_rows_without_a_numpy_dtype_are_tensors(tmp_path):
    torch = pytest.importorskip("torch")
    matrix = torch.arange(12, dtype=torch.bfloat16).reshape(4, 3)
    shardwright.save({"w": matrix}, tmp_path / "p")
    with shardwright.open(tmp_path / "p") as checkpoint:
        rows = list(checkpoint["w"])
        assert [type(row) for row in rows] == [shardwright.Tensor] * 4
        assert torch.stack([torch.from_dlpack(row) for row in rows]).equal(matrix)
        assert torch.as_tensor(checkpoint["w"]).equal(matrix)


def test_conversions_follow_the_rules_of_numpy(stored):
    checkpoint, _ = stored
    assert np.asarray(checkpoint["rows"], dtype="i4").dtype == np.int32
    assert np.asarray(checkpoint["scalar"]).shape == () and int(np.asarray(checkpoint["scalar"])) == 7
    assert np.asarray(checkpoint["empty"]).shape == (0, 3)
    array = np.asarray(checkpoint["rows"])
    array[0, 0] = -1
    assert np.asarray(checkpoint["rows"])[0, 0] == 0, "each conversion is a copy of its own"
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(checkpoint["rows"], copy=False)
    with pytest.raises(BufferError, match="copy=False"):
        np.from_dlpack(checkpoint["rows"], copy=False)


def test_stored_tensors_are_saved_again_and_are_no_targets(stored, tmp_path):
    checkpoint, _ = stored
    shardwright.save({"again": checkpoint["rows"]}, tmp_path / "q")
    with shardwright.open(tmp_path / "q") as copy:
        assert copy["again"].numpy().tolist() == ROWS.tolist()
    with pytest.raises(shardwright.InvalidArgumentError, match="read-only"):
        shardwright.load(tmp_path / "q", into={"again": checkpoint["rows"]})


class CountedName(str):
    """Counts how often it is compared."""

    compared = 0

    def __eq__(self, other):
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_name_is_found_without_a_look_at_the_others(tmp_path):
    shardwright.save({f"layer.{i}": np.zeros(1, dtype="f4") for i in range(500)}, tmp_path / "p")
    with shardwright.open(tmp_path / "p") as checkpoint:
        CountedName.compared = 0
        assert CountedName("layer.499") in checkpoint and CountedName("layer.500") not in checkpoint
        assert CountedName.compared < 20 and ["layer.0"] not in checkpoint
        assert len(checkpoint) == 500 and list(checkpoint) == list(checkpoint.keys())


def test_one_tensor_asks_the_library_for_one_row(tmp_path, monkeypatch):
    shardwright.save({f"layer.{i}": np.full(1, i, dtype="f4") for i in range(500)}, tmp_path / "p")
    native, asked = shardwright.checkpoint.native, []
    with shardwright.open(tmp_path / "p") as checkpoint:
        rows = native.shw_py_checkpoint_tensors
        monkeypatch.setattr(native, "shw_py_checkpoint_tensors",
                            lambda handle, first, count: asked.append(count) or rows(handle, first, count))
        assert [float(checkpoint[name][0]) for name in checkpoint] == [float(name[6:]) for name in checkpoint]
    assert asked == [1] * 500


def calls_and_memory(action):
    """Calls of functions, and most bytes held, while `action` runs."""
    calls = []
    tracemalloc.start()
    sys.setprofile(lambda frame, event, argument: calls.append(event) if event in ("call", "c_call") else None)
    try:
        action()
    finally:
        sys.setprofile(None)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return len(calls), memory


LOOKS = {
    "read": lambda checkpoint: checkpoint["t7"].read(),
    "asarray": lambda checkpoint: np.asarray(checkpoint["t7"]),
    "slice": lambda checkpoint: checkpoint["t7"][1:],
    "shape": lambda checkpoint: checkpoint.tensor("t7", rank=0).shape,
}


def test_one_tensor_costs_the_same_among_few_and_many(tmp_path):
    found = {}
    for count in (10, 1000):
        shardwright.save({f"t{i}": np.arange(3) for i in range(count)}, tmp_path / str(count))
        with shardwright.open(tmp_path / str(count)) as checkpoint:
            for name, look in LOOKS.items():
                look(checkpoint)  # what is made once, at the first use
                found[name, count] = calls_and_memory(lambda: look(checkpoint))  # noqa: B023
    for name in LOOKS:
        (few, little), (many, much) = found[name, 10], found[name, 1000]
        assert few == many > 2, name
        assert much < little + 4096, name  # a list of 1,000 names has 8,000 bytes
