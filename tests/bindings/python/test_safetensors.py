# SPDX-License-Identifier: Apache-2.0
"""Files that the safetensors package writes, opened and loaded here: every dtype, names, metadata, shards, damage."""
import hashlib
import json
import struct

import numpy
import pytest
import safetensors
import safetensors.numpy
import shardwright

ONE_BYTE = ("bool", "int8", "uint8", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
BYTES = dict.fromkeys(ONE_BYTE, 1) | {"int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "uint32": 4, "float32": 4,
                                      "int64": 8, "uint64": 8, "float64": 8, "complex64": 8}
SHAPES = ((), (1,), (3, 5), (0,), (2, 0, 3), (7, 1, 2))


def write(path, tensors, metadata=None):
    """tensors: name -> (dtype, shape, uint8 array of its bytes); the package writes them."""
    specs = {name: safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=data.ctypes.data, data_len=data.nbytes)
             for name, (dtype, shape, data) in tensors.items()}
    safetensors.serialize_file(specs, path, metadata)


def random_bytes(count, dtype="uint8", seed=3):
    return numpy.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 256, count, "uint8")


def digests(tensors):
    return {name: {"dtype": dtype, "shape": list(shape), "digest": hashlib.sha256(data.tobytes()).hexdigest()}
            for name, (dtype, shape, data) in tensors.items()}


def hand_made(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.mark.parametrize("dtype", BYTES)
def test_every_dtype_of_the_package(dtype, tmp_path):
    path = tmp_path / "m.safetensors"
    tensors = {f"t{i}": (dtype, shape, random_bytes(int(numpy.prod(shape)) * BYTES[dtype], dtype))
               for i, shape in enumerate(SHAPES)}
    write(path, tensors)
    with shardwright.open(path) as c:
        assert c.format == "safetensors" and c.generation == "" and sorted(c) == sorted(tensors)
        assert c.digest("sha256") == digests(tensors)
        report = c.verify(deep=True)
        assert not report.digests and any("no digests" in note for note in report.notes)
    loaded = shardwright.load(path)
    for name, (_, shape, data) in tensors.items():
        assert loaded[name].dtype == dtype and tuple(loaded[name].shape) == shape
        assert bytes(loaded[name].tobytes()) == data.tobytes()


def test_packed_floats_have_the_shape_of_the_header(tmp_path):
    path = tmp_path / "m.safetensors"
    data = random_bytes(6)
    write(path, {"w": ("float4_e2m1fn_x2", (2, 3), data)})
    with shardwright.open(path) as c:
        assert c.digest("sha256") == digests({"w": ("float4_e2m1fn", (2, 6), data)})
    for dtype, name in (("F6_E2M3", "float6_e2m3fn"), ("F6_E3M2", "float6_e3m2fn")):
        hand_made(path, {"w": {"dtype": dtype, "shape": [2, 4], "data_offsets": [0, 6]}}, data.tobytes())
        with shardwright.open(path) as c:
            assert c.digest("sha256") == digests({"w": (name, (2, 4), data)})


def test_names_and_metadata_come_as_they_are(tmp_path):
    path = tmp_path / "m.safetensors"
    names = ["", "\u00fcn\u00efcode.\u2713", "a/b\\c", "nul\0", "tab\t\"quoted\"", "x" * 60000, "\U0001F600"]
    metadata = {"format": "pt", "big": "\u00e4" * 1_000_000, "": "", "json": json.dumps({"a": [1]})}
    arrays = {name: numpy.arange(i, dtype="i4") for i, name in enumerate(names)}
    safetensors.numpy.save_file(arrays, path, metadata)
    with shardwright.open(path) as c:
        assert set(c) == set(names) and c.metadata == metadata
        assert all((c[name].numpy() == arrays[name]).all() for name in names)


def test_a_load_fills_what_the_host_holds(tmp_path):
    arrays = {"w": numpy.arange(60, dtype="f4").reshape(5, 12), "b": numpy.arange(12, dtype="f2"), "step": numpy.array(7)}
    safetensors.numpy.save_file(arrays, tmp_path / "m.safetensors")
    into = {name: numpy.zeros_like(array) for name, array in arrays.items()}
    shardwright.load(tmp_path / "m.safetensors", into)
    assert all((into[name] == array).all() for name, array in arrays.items())
    with shardwright.open(tmp_path / "m.safetensors") as c:
        assert (c["w"][1:4, ::3] == arrays["w"][1:4, ::3]).all()


@pytest.mark.parametrize("indexed", [True, False])
def test_shards_of_a_directory_are_one_checkpoint(indexed, tmp_path):
    arrays = {f"layer.{i}": numpy.full((3, i + 1), i, dtype="i2") for i in range(6)}
    files = [f"model-{i:05}-of-00003.safetensors" for i in range(1, 4)]
    for i, file in enumerate(files):
        safetensors.numpy.save_file(dict(list(arrays.items())[2 * i:2 * i + 2]), tmp_path / file, {"format": "np"})
    if indexed:
        weight_map = {name: files[i // 2] for i, name in enumerate(arrays)}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 126}, "weight_map": weight_map}))
    with shardwright.open(tmp_path) as c:
        assert c.format == "hf-safetensors" and c.metadata == {"format": "np"} and c.info()["counts"]["files"] == 3
        assert all((c[name].numpy() == array).all() for name, array in arrays.items())
        assert c.info()["notes"] == []
    (tmp_path / files[1]).unlink()
    if indexed:
        with pytest.raises(shardwright.DataLossError, match=files[1]):
            shardwright.open(tmp_path)


ENTRY = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}


@pytest.mark.parametrize(("header", "data"), [
    ({"a": ENTRY}, b"12345"), ({"a": ENTRY}, b"123"), ({"a": ENTRY, "b": ENTRY}, b"1234"),
    ({"a": ENTRY | {"data_offsets": [1, 5]}}, b"12345"), ({"a": ENTRY | {"shape": [5]}}, b"1234"),
    ({"a": ENTRY | {"shape": [2**40, 2**40]}}, b"1234"), ({"__metadata__": {"k": 1}}, b""), (b"{}\0", b""), (b"[]", b""),
    (b"{\"a\": 1}", b""), (b"", b"")])
def test_what_the_package_refuses_is_refused_here(header, data, tmp_path):
    path = tmp_path / "m.safetensors"
    hand_made(path, header, data)
    with pytest.raises(safetensors.SafetensorError):
        safetensors.safe_open(path, "np")
    with pytest.raises(shardwright.DataLossError, match="m.safetensors"):
        shardwright.open(path)


def test_what_the_package_lets_pass_is_refused_here(tmp_path):
    path = tmp_path / "m.safetensors"
    hand_made(path, b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}', b"12")
    with safetensors.safe_open(path, "np") as f:
        assert list(f.keys()) == ["a"]
    with pytest.raises(shardwright.DataLossError, match="'a' is there twice"):
        shardwright.open(path)
