# SPDX-License-Identifier: Apache-2.0
"""Files that a save writes, read by the safetensors package: bytes, dtypes, metadata, and the names that loaders look for."""
import base64
import concurrent.futures
import json
import os
import stat

import numpy
import pytest
import safetensors
import safetensors.numpy
import shardwright

ARRAYS = {
    "b.weight": numpy.arange(12, dtype="float32").reshape(3, 4),
    "a.weight": numpy.arange(6, dtype="int64"),
    "norm": numpy.arange(5, dtype="float16"),
    "mask": numpy.array([True, False, True]),
    "scalar": numpy.array(3.5, "float64"),
    "empty": numpy.zeros((0, 3), "uint8"),
}


def same(found, expected):
    assert sorted(found) == sorted(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


def test_one_file_has_the_bytes_of_the_package(tmp_path):
    shardwright.save(ARRAYS, tmp_path / "ours.safetensors", format="safetensors", metadata={"format": "np"})
    safetensors.numpy.save_file(ARRAYS, tmp_path / "theirs.safetensors", {"format": "np"})
    assert (tmp_path / "ours.safetensors").read_bytes() == (tmp_path / "theirs.safetensors").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["ours.safetensors", "theirs.safetensors"]


def test_a_directory_is_loaded_by_its_index(tmp_path):
    for step in range(2):  # the second save replaces the first
        arrays = {name: numpy.asarray(array + step, array.dtype) for name, array in ARRAYS.items()}
        shardwright.save(arrays, tmp_path / "m", format="safetensors", max_shard_size=48, metadata={"step": str(step)})
        index = json.loads((tmp_path / "m" / "model.safetensors.index.json").read_text())
        assert index["metadata"]["total_size"] == sum(array.nbytes for array in arrays.values())
        files = sorted(set(index["weight_map"].values()))
        assert len(files) > 1 and all(file.endswith(f"-of-{len(files):05}.safetensors") for file in files)
        left = set(os.listdir(tmp_path / "m")) - set(files)
        assert left <= {"model.safetensors.index.json", ".lock"}
        found = {}
        for file in files:
            with safetensors.safe_open(tmp_path / "m" / file, "np") as opened:
                assert opened.metadata() == {"format": "pt", "step": str(step)}
                for name in opened.keys():
                    assert index["weight_map"][name] == file
                    found[name] = opened.get_tensor(name)
        same(found, arrays)
        with shardwright.open(tmp_path / "m") as c:
            assert c.format == "hf-safetensors"


def test_what_other_writers_left_is_replaced_whole(tmp_path):
    path = tmp_path / "m.safetensors"
    safetensors.numpy.save_file({"old": numpy.ones(3)}, path)
    shardwright.save(ARRAYS, path, format="safetensors")
    same(safetensors.numpy.load_file(path), ARRAYS)
    with pytest.raises(shardwright.AlreadyExistsError):
        shardwright.save(ARRAYS, path, format="safetensors", overwrite="refuse")


def test_text_becomes_metadata(tmp_path):
    path = tmp_path / "m.safetensors"
    shardwright.save({"w": ARRAYS["norm"], "step": 7}, path, format="safetensors")
    with safetensors.safe_open(path, "np") as opened:
        assert opened.metadata() == {"format": "pt", "step": "7"}
    same(safetensors.numpy.load_file(path), {"w": ARRAYS["norm"]})


@pytest.mark.parametrize("path", ["m", "m.safetensors"])
def test_bytes_become_base64_that_the_package_reads(path, tmp_path):
    blob = bytes(range(256)) * 3
    shardwright.save(ARRAYS | {"blob": blob, "none": b""}, tmp_path / path, format="safetensors", max_shard_size=48)
    files = sorted(tmp_path.glob("m/*-of-*.safetensors")) or [tmp_path / path]
    stored = []
    for file in files:
        with safetensors.safe_open(file, "np") as opened:
            stored.append(opened.metadata())
    # Beside what all files have, in the first one alone.
    assert all(metadata == {"format": "pt"} for metadata in stored[1:])
    scheme, text = stored[0]["shardwright.object:blob"].split(";base64,")
    assert scheme.startswith("data:") and base64.b64decode(text, validate=True) == blob
    assert stored[0]["shardwright.object:none"].endswith(";base64,") and len(stored[0]) == 3
    with shardwright.open(tmp_path / path) as c:
        assert c.object("blob") == blob and c.object("none") == b"" and set(c.metadata) == {"format"}
        assert sorted(c.object_names()) == ["blob", "none"]


def test_bytes_that_another_program_wrote_are_objects(tmp_path):
    text = "data:application/octet-stream;base64," + base64.b64encode(b"\x00\xff").decode()
    safetensors.numpy.save_file(ARRAYS, tmp_path / "m.safetensors",
                                {"shardwright.object:blob": text, "modelspec.thumbnail": text})
    with shardwright.open(tmp_path / "m.safetensors") as c:
        assert c.object_names() == ["blob"] and c.object("blob") == b"\x00\xff"
        assert c.metadata == {"modelspec.thumbnail": text}


def test_the_umask_decides_the_mode(tmp_path):
    before = os.umask(0o027)
    try:
        shardwright.save(ARRAYS, tmp_path / "m.safetensors", format="safetensors")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / "m.safetensors").st_mode) == 0o640


@pytest.mark.parametrize("path", ["m", "m.safetensors"])
def test_ranks_write_their_parts(path, tmp_path):
    rows = numpy.arange(6000, dtype="float32").reshape(60, 100)
    columns = numpy.arange(2400, dtype="int32").reshape(40, 60)

    def save(collective):
        begin = collective.rank * 20
        own = {"rows": shardwright.Shard(rows[begin:begin + 20], rows.shape, (((begin, 0), (20, 100)),)),
               "columns": shardwright.Shard(columns[:, begin:begin + 20].copy(), columns.shape, (((0, begin), (40, 20)),))}
        return shardwright.save(own, tmp_path / path, collective=collective, format="safetensors")

    with concurrent.futures.ThreadPoolExecutor(3) as ranks:
        reports = list(ranks.map(save, shardwright.thread_collectives(3)))
    assert all(report.format == "safetensors" for report in reports)
    loaded = shardwright.load(tmp_path / path)
    assert loaded["rows"].tobytes() == rows.tobytes() and loaded["columns"].tobytes() == columns.tobytes()


def test_bytes_are_converted_there_and_back(tmp_path):
    blob = b"\x80\x00 no text"
    shardwright.save(ARRAYS | {"blob": blob, "step": 7}, tmp_path / "native")
    shardwright.convert(tmp_path / "native", tmp_path / "files", format="safetensors", max_shard_size=48)
    shardwright.convert(tmp_path / "files", tmp_path / "one.safetensors", format="safetensors")
    same(safetensors.numpy.load_file(tmp_path / "one.safetensors"), ARRAYS)
    shardwright.convert(tmp_path / "one.safetensors", tmp_path / "back")
    with shardwright.open(tmp_path / "native") as first, shardwright.open(tmp_path / "back") as last:
        assert first.digest() == last.digest()
        assert last.object("blob") == blob and last.object_names() == ["blob"] and last.metadata["step"] == "7"
        assert last.object_content_type("blob") == first.object_content_type("blob")


def test_convert_there_and_back(tmp_path):
    shardwright.save({"w": ARRAYS[next(iter(ARRAYS))], "step": 7}, tmp_path / "text")
    shardwright.convert(tmp_path / "text", tmp_path / "text files", format="safetensors")
    with shardwright.open(tmp_path / "text files") as files:
        assert files.metadata["step"] == "7"
    shardwright.save(ARRAYS, tmp_path / "native")
    report = shardwright.convert(tmp_path / "native", tmp_path / "files", format="safetensors", max_shard_size=48)
    assert report.operation == "convert" and report.format == "safetensors"
    shardwright.convert(tmp_path / "files", tmp_path / "one.safetensors", format="safetensors")
    same(safetensors.numpy.load_file(tmp_path / "one.safetensors"), ARRAYS)
    shardwright.convert(tmp_path / "one.safetensors", tmp_path / "back")
    with shardwright.open(tmp_path / "native") as first, shardwright.open(tmp_path / "back") as last:
        assert first.digest() == last.digest()
    trusted = shardwright.convert(tmp_path / "files", tmp_path / "trusted", format="native", compare=False)
    assert any("not compared" in note for note in trusted.notes)
    with pytest.raises(shardwright.AlreadyExistsError):
        shardwright.convert(tmp_path / "files", tmp_path / "native")
    with pytest.raises(shardwright.InvalidArgumentError, match="lie in one another"):
        shardwright.convert(tmp_path / "files", tmp_path / "files" / "below")
