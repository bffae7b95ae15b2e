# SPDX-License-Identifier: Apache-2.0
"""What pickles would import, files without it, and what objects are: nothing is run."""
import datetime
import os
import pathlib
import pickle

import pytest
import shardwright

GOLDEN = pathlib.Path(os.environ["SHW_SOURCE_DIR"]) / "tests" / "golden"


class Command:
    """Unpickling one makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_what_a_pickle_would_call_is_listed_and_not_called(tmp_path):
    (tmp_path / "v.pkl").write_bytes(pickle.dumps({"lr": 0.5, "when": Command(tmp_path / "made")}))
    found = shardwright.scan_pickles(tmp_path / "v.pkl")
    assert found["unknown"] == 1 and found["pickles"] == 1
    first = found["globals"][0]
    assert (first["module"], first["name"], first["calls"], first["known"]) == ("posix", "mkdir", 1, False)
    assert first["file"] == "v.pkl" and first["offset"] > 0
    assert not (tmp_path / "made").exists()


def test_a_clean_file_is_written_beside(tmp_path):
    (tmp_path / "v.pkl").write_bytes(pickle.dumps({"lr": 0.5, "when": Command(tmp_path / "made")}, protocol=2))
    written = shardwright.clean_pickles(tmp_path / "v.pkl", tmp_path / "clean.pkl")
    assert written["files"] == [{"file": "v.pkl", "replaced": 1, "left_out": []}]
    assert pickle.loads((tmp_path / "clean.pkl").read_bytes()) == {"lr": 0.5, "when": None}
    with pytest.raises(shardwright.AlreadyExistsError):
        shardwright.clean_pickles(tmp_path / "v.pkl", tmp_path / "clean.pkl")
    with pytest.raises(shardwright.NotFoundError):
        shardwright.scan_pickles(tmp_path / "nothing")


def test_an_object_is_described(tmp_path):
    shardwright.save({"when": datetime.date(2024, 1, 2), "plain": {"a": 1}}, tmp_path / "c", objects="pickle")
    with shardwright.open(tmp_path / "c") as checkpoint:
        said = checkpoint.describe_object("when")
        assert said["content_type"] == "application/python-pickle"
        assert said["value"] == {"$type": "datetime.date", "value": "2024-01-02"}
        with pytest.raises(KeyError):
            checkpoint.describe_object("nothing")


def test_an_index_of_torch_is_scanned():
    found = shardwright.scan_pickles(GOLDEN / "torch_dcp" / "bad_dcp_malicious_metadata" / "ckpt")
    assert [g["module"] for g in found["globals"] if not g["known"]] == ["posix"]
