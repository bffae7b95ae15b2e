# SPDX-License-Identifier: Apache-2.0
"""What goes in comes out: values, names, dtypes, layouts in memory, nesting."""
import array
import collections
import math

import numpy as np
import pytest
import shardwright

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
          "float64", "complex32", "complex64", "complex128", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
          "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn",
          "float6_e3m2fn", "float4_e2m1fn", "int4", "uint4"]


def round_trip(state, tmp_path, **options):
    shardwright.save(state, tmp_path / "p", **options)
    return shardwright.load(tmp_path / "p")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_keeps_its_bytes_and_name(dtype, tmp_path):
    tensor = shardwright.zeros(dtype, (4, 8))
    tensor.raw()[:] = bytes(k % 2 if dtype == "bool" else k % 251 for k in range(tensor.nbytes))
    found = round_trip({"x": tensor}, tmp_path)["x"]
    assert (found.dtype, found.shape, found.tobytes()) == (dtype, (4, 8), tensor.tobytes())


@pytest.mark.parametrize("name", ["a\0b", "smile \U0001F600", "../..", "a.b", ".", " ", "x" * 65535, "\x7f\x01", "slash/"])
def test_names_of_any_characters_come_back(name, tmp_path):
    found = round_trip({name: np.arange(3.0), "object " + name[:9]: 5}, tmp_path)
    assert found[name].numpy().tolist() == [0, 1, 2]
    assert found["object " + name[:9]] == 5
    with shardwright.open(tmp_path / "p") as c:
        assert list(c.keys()) == [name] and name in c and c[name].name == name


@pytest.mark.parametrize("value", [
    None, True, False, 0, -7, 2**200, 0.1, -0.0, 1e308, math.inf, -math.inf, "", "text \U0001F600 \0", [], {}, (), [[], {}, ()],
    (1, (2.5, None)), {1: "a", "1": "b", None: 0, (1, 2): 3, True: 4}, {"$float": "nan"}, {"$tuple": [1]}, {"": {"": []}},
    {"betas": (0.9, 0.999), "nested": [{"a": [1, [2]]}]}])
def test_json_leaves_come_back_equal_in_value_and_type(value, tmp_path):
    found = round_trip({"value": value, "deep": {"list": [value]}}, tmp_path)
    assert repr(found["value"]) == repr(value)
    assert repr(found["deep"]["list"][0]) == repr(value)


def test_nan_comes_back(tmp_path):
    assert math.isnan(round_trip({"value": math.nan}, tmp_path)["value"])


def test_nesting_keeps_keys_lists_and_containers(tmp_path):
    state = {"model": {"layers.0": np.ones(2), "deep": {0: np.zeros(1), 10: {"x": np.arange(2)}}},
             "list": [np.ones(1), {"k": np.ones(3)}, "text", [], b"bytes"], "empty": {}, 7: np.full(1, 7.0), "n": None}
    found = round_trip(state, tmp_path)
    assert found["model"]["layers.0"].numpy().tolist() == [1, 1]
    assert list(found["model"]["deep"]) == [0, 10] or set(found["model"]["deep"]) == {0, 10}
    assert found["model"]["deep"][10]["x"].numpy().tolist() == [0, 1]
    assert found["list"][1]["k"].numpy().tolist() == [1, 1, 1]
    assert found["list"][2:] == ["text", [], b"bytes"]
    assert found["empty"] == {} and found[7].numpy().tolist() == [7] and found["n"] is None


def test_other_mappings_and_named_tuples_are_structure_too(tmp_path):
    pair = collections.namedtuple("pair", "a b")
    state = collections.OrderedDict(x=collections.ChainMap({"y": np.ones(1)}), z=pair(np.ones(2), 3))
    found = round_trip(state, tmp_path)
    assert found["x"]["y"].shape == (1,) and found["z"][0].shape == (2,) and found["z"][1] == 3


def test_bytes_are_byte_objects(tmp_path):
    shardwright.save({"blob": b"\0\1", "none": b""}, tmp_path / "p")
    with shardwright.open(tmp_path / "p") as c:
        assert c.objects() == {"blob": b"\0\1", "none": b""}
        assert c.object_content_type("blob") == "application/octet-stream"


def test_buffers_of_other_kinds_are_tensors(tmp_path):
    state = {"array": array.array("d", [1, 2]), "bytearray": bytearray(b"ab"), "view": memoryview(b"abcdef")[::2],
             "scalar": np.int64(5), "fortran": np.asfortranarray(np.arange(6).reshape(2, 3))}
    found = round_trip(state, tmp_path)
    assert found["array"].dtype == "float64" and found["array"].numpy().tolist() == [1, 2]
    assert found["bytearray"].tobytes() == b"ab" and found["view"].tobytes() == b"ace"
    assert found["scalar"].shape == () and int(found["scalar"].numpy()) == 5
    assert found["fortran"].numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("make", [lambda a: a.T, lambda a: a[::2, 1:], lambda a: a[:, ::3], lambda a: a[1], lambda a: a[1:1],
                                  lambda a: np.broadcast_to(a[0], (3, 6)), lambda a: a[:, None, :], lambda a: a[2, 3]])
def test_strided_arrays_are_saved_row_by_row(make, tmp_path):
    view = make(np.arange(24, dtype="i4").reshape(4, 6))
    assert round_trip({"x": view}, tmp_path)["x"].numpy().tolist() == view.tolist()


def test_a_view_of_a_large_buffer_costs_its_elements(tmp_path):
    large = np.arange(1 << 20, dtype="f4")
    assert round_trip({"x": large[5:9]}, tmp_path)["x"].numpy().tolist() == [5, 6, 7, 8]
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) < 1 << 16



@pytest.mark.parametrize("make", [lambda a: a.T, lambda a: a[::2, 1:], lambda a: a[:, ::3], lambda a: a[1:1]])
def test_strided_targets_are_filled_and_nothing_else(make, tmp_path):
    wanted = make(np.arange(24, dtype="i4").reshape(4, 6))
    shardwright.save({"x": wanted}, tmp_path / "p")
    whole = np.full((4, 6), -1, dtype="i4")
    target = make(whole)
    shardwright.load(tmp_path / "p", into={"x": target})
    assert target.tolist() == wanted.tolist()
    target[...] = -1
    assert (whole == -1).all()


def test_a_load_replaces_values_in_place_and_reports(tmp_path):
    shardwright.save({"w": np.arange(4.0), "opt": {"m": np.ones(2), "step": 3}, "extra": 1}, tmp_path / "p")
    state = {"w": np.zeros(4), "opt": {"m": np.zeros(2), "step": 0}, "new": 5}
    inner = state["opt"]
    report = shardwright.load(tmp_path / "p", into=state, missing="report")
    assert state["opt"] is inner and inner["step"] == 3 and inner["m"].tolist() == [1, 1]
    assert report.missing == ["new"] and report.unexpected == ["extra"] and state["new"] == 5
    assert sorted(report.loaded) == ["opt.m", "opt.step", "w"]


def test_flat_names_may_hold_dots(tmp_path):
    found = round_trip({"a.b": np.ones(1), "a": {"c": np.ones(2)}}, tmp_path)
    assert found["a.b"].shape == (1,) and found["a"]["c"].shape == (2,)


def test_pickles_only_when_asked_for_and_run_only_when_trusted(tmp_path):
    state = {"set": {1, 2}, "w": np.ones(1)}
    shardwright.save(state, tmp_path / "p", objects="pickle")
    assert isinstance(shardwright.load(tmp_path / "p")["set"], bytes)
    assert shardwright.load(tmp_path / "p", trust_pickle=True)["set"] == {1, 2}


def test_shards_of_one_rank_make_a_whole(tmp_path):
    a = np.arange(12.0).reshape(4, 3)
    piece = np.concatenate([a[:2].ravel(), a[2:].ravel()])
    state = {"w": shardwright.Shard(piece, (4, 3), boxes=(((0, 0), (2, 3)), ((2, 0), (2, 3))))}
    assert round_trip(state, tmp_path)["w"].numpy().tolist() == a.tolist()


def test_many_small_tensors_come_back(tmp_path):
    state = {f"t{i}": np.full(3, i) for i in range(3000)}
    found = round_trip(state, tmp_path)
    assert all(found[f"t{i}"].numpy().tolist() == [i] * 3 for i in range(3000))


def test_a_state_of_many_pieces_keeps_order_layout_and_nesting(tmp_path):
    """States are made in pieces of 1,024 tensors: what changes from entry to entry must not show."""
    def value(i):
        if i % 5 == 1:
            return np.arange(6.0).reshape(2, 3).T + i  # strided
        return bytes([i % 256]) if i % 7 == 2 else np.full((i % 3,), float(i))

    tree = {"flat": {f"t{i}": value(i) for i in range(2500)}, "list": [np.full(1, i) for i in range(1100)],
            "late": {i: np.full((), i) for i in range(1030)}}
    state = shardwright.State.from_dict(tree)
    tensors = [f"flat.t{i}" for i in range(2500) if not isinstance(tree["flat"][f"t{i}"], bytes)]
    assert state.names() == tensors + [f"list.{i}" for i in range(1100)] + [f"late.{i}" for i in range(1030)]
    found = round_trip(tree, tmp_path)
    for name, saved in tree["flat"].items():
        assert found["flat"][name] == saved if isinstance(saved, bytes) else np.array_equal(found["flat"][name], saved), name
    assert [int(t.numpy()[0]) for t in found["list"]] == list(range(1100))
    assert {key: int(t.numpy()) for key, t in found["late"].items()} == {i: i for i in range(1030)}


@pytest.mark.parametrize("apart", [1, 1024, 2100])
def test_a_doubled_name_is_refused_however_far_apart(apart):
    tree = {"a": {"b": np.ones(1)}} | {f"t{i}": np.ones(1) for i in range(apart)} | {"a.b": np.zeros(1)}
    with pytest.raises(shardwright.AlreadyExistsError, match="a.b"):
        shardwright.State.from_dict(tree)


def flat_state(names, memory, count):
    """State of `count` tensors of two, one or no dimensions of extent 2, 16 bytes apart in `memory`."""
    blobs = [name.encode() for name in names]
    shapes = np.cumsum([0] + [i % 3 for i in range(count)]).astype("u8")
    return shardwright.State.from_arrays(b"".join(blobs), np.cumsum([0] + [len(b) for b in blobs]).astype("u8"),
                                         memory.ctypes.data + 16 * np.arange(count, dtype="u8"),
                                         np.full(count, shardwright.dtype_number("float32"), "u2"),
                                         np.full(int(shapes[-1]), 2, "i8"), shapes, owner=memory)


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 3000])
def test_flat_arrays_describe_what_a_mapping_does(count, tmp_path):
    memory = np.arange(4 * count + 1, dtype="f4")
    names = [f"lay\u00e9r.{i}" for i in range(count)]
    mapping = {name: memory[4 * i:4 * i + 2 ** (i % 3)].reshape((2,) * (i % 3)) for i, name in enumerate(names)}
    state = flat_state(names, memory, count)
    assert (state.names(), state.tensor_count) == (names, count)
    shardwright.save(state, tmp_path / "flat")
    shardwright.save(mapping, tmp_path / "mapping")
    with shardwright.open(tmp_path / "flat") as flat, shardwright.open(tmp_path / "mapping") as other:
        assert flat.digest() == other.digest()


def test_flat_arrays_refuse_a_doubled_name_in_another_piece():
    names = [f"t{i}" for i in range(2000)] + ["t5"]
    with pytest.raises(shardwright.AlreadyExistsError, match="t5"):
        flat_state(names, np.zeros(4 * len(names), "f4"), len(names))


class Lying(dict):
    def __len__(self):
        return 2 ** 62


def test_the_length_that_a_mapping_claims_does_not_matter():
    tree = Lying({f"t{i}": np.ones(1) for i in range(1100)})
    assert shardwright.State.from_dict(tree).tensor_count == 1100


def test_long_lists_of_numbers_beside_tensors_come_back(tmp_path):
    numbers = list(range(50_000))
    mixed = [np.ones(1), *range(2000)]
    found = round_trip({"numbers": numbers, "mixed": mixed}, tmp_path)
    assert found["numbers"] == numbers
    assert found["mixed"][1:] == mixed[1:] and found["mixed"][0].numpy().tolist() == [1]
