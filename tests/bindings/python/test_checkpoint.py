# SPDX-License-Identifier: Apache-2.0
"""Open checkpoints: slices against numpy, digests against hashlib, verification, metadata, lifetime."""
import hashlib
import io
import pickle
import sys
from collections.abc import Mapping
from html.parser import HTMLParser

import numpy as np
import pytest
import shardwright

ARRAY = np.arange(7 * 5 * 4, dtype="f4").reshape(7, 5, 4)


@pytest.fixture
def checkpoint(tmp_path):
    shardwright.save({"w": ARRAY, "h": ARRAY.astype("f2"), "flag": np.array(True), "config": {"a": [1]}}, tmp_path / "p",
                     metadata={"step": "12", "note": "\U0001F600"})
    with shardwright.open(tmp_path / "p") as c:
        yield c


@pytest.mark.parametrize("index", [
    (), ..., 3, -1, slice(2, 5), slice(None), slice(-3, None), slice(5, 2), slice(0, 100), (slice(1, 6, 2), slice(None)),
    (2, slice(1, 3)), (..., 1), (slice(2, 4), ..., slice(None, None, 3)), (0, 0, 0), (-7, -5, -4), (slice(3, 3), 0)])
def test_slices_are_those_of_numpy(checkpoint, index):
    found = checkpoint["w"][index]
    expected = ARRAY[index]
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("index", [7, -8, (0, 5), (0, 0, 0, 0), (slice(None), slice(None), 4)])
def test_an_index_outside_is_out_of_range(checkpoint, index):
    with pytest.raises(IndexError) as caught:
        checkpoint["w"][index]
    assert isinstance(caught.value, shardwright.OutOfRangeError)


@pytest.mark.parametrize(("offsets", "sizes"), [((6, 0, 0), (2, 1, 1)), ((0, 0, 0), (7, 6, 4)),
                                                ((2**62, 0, 0), (2**62, 1, 1))])
def test_a_box_outside_is_out_of_range(checkpoint, offsets, sizes):
    with pytest.raises(shardwright.OutOfRangeError, match="'w'"):
        checkpoint["w"].read(offsets, sizes)


def test_reads_fill_memory_of_the_caller(checkpoint):
    out = np.zeros((3, 5, 4), dtype="f4")
    assert checkpoint["w"].read((1, 0, 0), (3, 5, 4), out=out) is out
    assert (out == ARRAY[1:4]).all()
    with pytest.raises(shardwright.InvalidArgumentError):
        checkpoint["w"].read((1, 0, 0), (3, 5, 4), out=np.zeros((3, 5, 4), dtype="f8"))


def test_an_object_is_read_as_a_stream(tmp_path):
    blob = bytes(i * 7 & 0xFF for i in range(2_500_001))
    shardwright.save({"blob": blob, "empty": b""}, tmp_path / "blobs")
    with shardwright.open(tmp_path / "blobs") as c:
        with c.open_object("blob") as stream:
            assert stream.readable() and stream.seekable() and not stream.writable()
            assert stream.read(3) == blob[:3] and stream.tell() == 3
            assert stream.seek(-5, io.SEEK_END) == len(blob) - 5 and stream.read() == blob[-5:]
            assert stream.seek(1_048_570) and stream.read(20) == blob[1_048_570:1_048_590]
            assert stream.seek(0) == 0 and stream.read() == blob and stream.read() == b""
            with pytest.raises(ValueError, match="negative"):
                stream.seek(-1)
        with pytest.raises(ValueError, match="closed"):
            stream.read()
        assert c.open_object("empty").read() == b""
        with pytest.raises(KeyError, match="blob"):
            c.open_object("blub")


def test_digests_are_those_of_the_row_major_bytes(checkpoint):
    found = checkpoint.digest("sha256")
    assert found["w"] == {"dtype": "float32", "shape": [7, 5, 4], "digest": hashlib.sha256(ARRAY.tobytes()).hexdigest()}
    assert checkpoint["w"].digest("sha256") == found["w"]["digest"]
    with pytest.raises(shardwright.InvalidArgumentError, match="xxh3, sha256"):
        checkpoint.digest("md5")


def test_what_a_checkpoint_says_about_itself(checkpoint):
    assert sorted(checkpoint.keys()) == ["flag", "h", "w"] and len(checkpoint) == 3 and set(checkpoint) == {"flag", "h", "w"}
    assert checkpoint.metadata == {"step": "12", "note": "\U0001F600"}
    assert checkpoint.objects() == {"config": {"a": [1]}} and checkpoint.object_names() == ["config"]
    assert checkpoint.info()["schema"] == 1 and checkpoint.format == "native" and checkpoint.world_size == 1
    assert len(checkpoint.generation) == 32 and checkpoint.created_ns > 0
    t = checkpoint["w"]
    assert (t.dtype, t.shape, t.ndim, t.nbytes, t.kind, t.rank, t.path, len(t)) == (
        "float32", (7, 5, 4), 3, 560, "replicated", -1, ["w"], 7)
    (chunk,) = t.chunks()
    assert (chunk.offsets, chunk.sizes, chunk.nbytes, chunk.file) == ((0, 0, 0), (7, 5, 4), 560, checkpoint.files()[0])
    assert "w" in repr(t) and "native" in repr(checkpoint)


def test_a_checkpoint_is_a_mapping(checkpoint, tmp_path):
    assert isinstance(checkpoint, Mapping) and list(checkpoint) == list(checkpoint.keys())
    assert {name: t.shape for name, t in checkpoint.items()} == {"w": (7, 5, 4), "h": (7, 5, 4), "flag": ()}
    assert [t.name for t in checkpoint.values()] == list(checkpoint) and checkpoint.keys() >= {"w", "h"}
    assert checkpoint.get("w").name == "w" and checkpoint.get("gone") is None and "gone" not in checkpoint
    assert 7 not in checkpoint and None not in checkpoint.keys()
    with shardwright.open(tmp_path / "p") as other:
        assert checkpoint == checkpoint and checkpoint != other and len({checkpoint, other}) == 2


@pytest.mark.parametrize("look", [lambda c: c["gone"], lambda c: c.object("gone"), lambda c: c.ranks("gone"),
                                  lambda c: c.object_content_type("gone"),
                                  lambda c: shardwright.load(c._path, {"gone": np.zeros(1)}),
                                  lambda c: shardwright.LoadPlanner(c, {"gone": np.zeros(1)}).local_plan()])
def test_names_that_are_missing_are_key_errors(checkpoint, look):
    with pytest.raises(KeyError, match="gone") as caught:
        look(checkpoint)
    assert type(caught.value) is shardwright.MissingNameError and isinstance(caught.value, shardwright.NotFoundError)
    assert str(caught.value) == caught.value.message and "gone" in caught.value.details.values()
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is shardwright.MissingNameError and again.details == caught.value.details


def test_paths_that_are_missing_are_no_key_errors(tmp_path):
    with pytest.raises(shardwright.NotFoundError) as caught:
        shardwright.open(tmp_path / "nothing")
    assert not isinstance(caught.value, KeyError)


class Texts(HTMLParser):
    """Texts of a page, and its elements."""

    def __init__(self, page):
        super().__init__()
        self.texts, self.elements = [], []
        self.feed(page)

    def handle_data(self, data):
        self.texts.append(data)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, attrs))


def test_notebooks_show_what_lies_in_a_checkpoint(checkpoint, tmp_path):
    page = Texts(checkpoint._repr_html_())
    assert {"w", "float32", "[7, 5, 4]", "560 B", "replicated"} <= set(page.texts) and "more" not in page.texts[-1]
    assert "format: native" in " ".join(page.texts) and "step: 12" in " ".join(page.texts)
    checkpoint.close()
    assert "closed" in Texts(checkpoint._repr_html_()).texts[0]
    state = {f"<script>{i}</script>": np.ones(1) for i in range(60)}
    report = shardwright.save(state, tmp_path / "many", metadata={"<b>": "&lt;"})
    with shardwright.open(tmp_path / "many") as c:
        page = Texts(c._repr_html_())
    assert {tag for tag, _ in page.elements} == {"p", "b", "br", "table", "thead", "tbody", "tr", "th", "td"}
    assert sum(tag == "td" for tag, _ in page.elements) == 5 * 50 and page.texts[-1] == "and 10 more"
    assert "<script>0</script>" in page.texts and any("<b>: &lt;" in text for text in page.texts)
    assert "60" in " ".join(Texts(report._repr_html_()).texts)
    left = shardwright.load(tmp_path / "many", {"x<": np.ones(1)}, missing="report")
    assert {"missing", "x<", "unexpected", "<script>1</script>"} <= set(Texts(left._repr_html_()).texts)


def test_verify_reads_everything_only_when_deep(checkpoint):
    assert checkpoint.verify().verify == "structure"
    report = checkpoint.verify(deep=True)
    assert report.verify == "deep" and report.damage == [] and report.bytes_read >= 560


def test_damage_is_listed_or_raised_with_its_place(checkpoint, data_file, tmp_path):
    chunk = checkpoint["w"].chunks()[0]
    path = data_file(tmp_path / "p")
    data = bytearray(path.read_bytes())
    data[chunk.offset + 9] ^= 4
    path.write_bytes(data)
    with shardwright.open(tmp_path / "p") as damaged:
        report = damaged.find_damage(deep=True)
        assert len(report.damage) == 1 and report.damage[0]["tensor"] == "w"
        for deep_read in (lambda: damaged.verify(deep=True), lambda: damaged["w"][:]):
            with pytest.raises(shardwright.DataLossError) as caught:
                deep_read()
            assert caught.value.details["tensor"] == "w" and "rank-00000.shw" in caught.value.details["file"]
        assert damaged.verify().damage == damaged.find_damage().damage == []
        with pytest.raises(shardwright.DataLossError) as caught:
            damaged["w"][:]
        assert caught.value.details["tensor"] == "w" and "rank-00000.shw" in caught.value.details["file"]
        assert damaged["h"][0, 0].tolist() == [0, 1, 2, 3]
    with shardwright.open(tmp_path / "p", verify="off") as unchecked:
        assert unchecked["w"][:].shape == (7, 5, 4)


def test_use_after_close_is_a_state_error(checkpoint):
    tensor = checkpoint["w"]
    checkpoint.close()
    checkpoint.close()
    for use in (lambda: tensor[:], checkpoint.keys, checkpoint.info, lambda: checkpoint["w"], checkpoint.verify):
        with pytest.raises(RuntimeError) as caught:
            use()
        assert isinstance(caught.value, shardwright.FailedPreconditionError)
    assert "closed" in repr(checkpoint)


def test_handles_are_not_pickled_and_say_what_to_do(checkpoint):
    state = shardwright.State({"w": ARRAY})
    things = [checkpoint, state, shardwright.MemoryStorage(), shardwright.SingleCollective(), shardwright.zeros("int8", (1,)),
              shardwright.Layout((1,), ["replicate"]), shardwright.Context(threads=1), shardwright.SavePlanner(state)]
    for thing in things:
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(thing)


def test_errors_and_plans_are_pickled(checkpoint):
    error = shardwright.NotFoundError("gone", {"tensor": "w"})
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is shardwright.NotFoundError and copy.details == {"tensor": "w"} and str(copy) == "gone"
    plan = shardwright.LoadPlanner(checkpoint, {"w": np.zeros_like(ARRAY)}).local_plan()
    assert pickle.loads(pickle.dumps(plan)).to_bytes() == plan.to_bytes()


def test_runs_and_leftovers_are_found(tmp_path):
    for step in (100, 200):
        shardwright.save({"w": ARRAY}, tmp_path / f"step-{step:08d}")
    assert "step-00000200" in str(shardwright.list_steps(tmp_path))
    assert shardwright.latest(tmp_path) == str(tmp_path / "step-00000200")
    left = tmp_path / "step-00000200" / ("0" * 32)
    left.mkdir()
    (left / "rank-00000.shw").write_bytes(b"x" * 10)
    assert shardwright.collect_garbage(tmp_path / "step-00000200").removed == []
    assert [r["name"] for r in shardwright.collect_garbage(tmp_path / "step-00000200", grace=-1).removed] == ["0" * 32]
    assert left.exists()
    shardwright.collect_garbage(tmp_path / "step-00000200", grace=-1, apply=True)
    assert not left.exists() and shardwright.open(tmp_path / "step-00000200").verify(deep=True).damage == []


def test_tensors_share_their_bytes_with_numpy_and_dlpack(monkeypatch):
    tensor = shardwright.zeros("float32", (2, 3))
    array = np.asarray(tensor)
    array[1, 2] = 5
    assert np.from_dlpack(tensor)[1, 2] == 5 and memoryview(tensor)[1, 2] == 5
    kept = np.from_dlpack(tensor)
    del tensor, array
    assert kept[1, 2] == 5
    assert shardwright.zeros("bfloat16", (2,)).raw().nbytes == 4
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # as where it is not installed
    with pytest.raises(shardwright.UnimplementedError, match="bfloat16.*ml_dtypes"):
        shardwright.zeros("bfloat16", (2,)).numpy()
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(shardwright.zeros("bfloat16", (2,)))
