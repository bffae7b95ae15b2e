# SPDX-License-Identifier: Apache-2.0
"""Checkpoints to and from a newer megatron-core, which has its common state among the data, and reshards of both."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import shardwright
import shardwright.torch
from shardwright.torch import megatron

sys.path.insert(0, str(Path(__file__).parent))
from next_worker import tensors  # noqa: E402: it stands beside this file

SOURCE = Path(os.environ["SHW_SOURCE_DIR"])
FOLDER = Path(os.environ.get("SHW_MEGATRON_NEXT", SOURCE / ".venv/megatron-next"))
VERSION = (SOURCE / "tools/requirements/megatron-next.txt").read_text().rsplit("==", 1)[1].strip()


@pytest.fixture(scope="module", autouse=True)
def installed():
    done = subprocess.run([SOURCE / "tools/bootstrap.sh", "megatron-next"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"megatron-core {VERSION} could not be installed: {done.stderr.strip()[-300:]}")


def call(*words):
    front = [str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run([sys.executable, Path(__file__).with_name("next_worker.py"), *map(str, words)], capture_output=True,
                          text=True, timeout=600, check=False, env=os.environ | {"PYTHONPATH": os.pathsep.join(front)})
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"version {VERSION}" in done.stdout
    return done.stdout


def check_load(folder, expected, tmp_path, *words):
    torch.save(expected, tmp_path / "expected.pt")
    return call("load", folder, tmp_path / "expected.pt", *words)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory, installed):
    folder = tmp_path_factory.mktemp("theirs") / "ckpt"
    call("save", folder, "verify")
    return folder


def digests(folder):
    with shardwright.open(folder) as checkpoint:
        return {name: checkpoint[name].digest() for name in checkpoint}


def zeros():
    return {name: torch.zeros_like(value) for name, value in tensors().items()}


def assert_loaded(found):
    for name, value in tensors().items():
        assert found[name].dtype == value.dtype and torch.equal(found[name], value), name


def test_what_it_writes_is_read(theirs):
    with shardwright.open(theirs) as checkpoint:
        assert set(checkpoint) == set(tensors())
    assert not (theirs / "common.pt").exists()
    into = zeros()
    shardwright.torch.load(theirs, into=into)
    assert_loaded(into)
    found = megatron.load({name: megatron.ShardedTensor.from_rank_offsets(name, value) for name, value in zeros().items()}, theirs)
    assert_loaded(found)
    assert found["iteration"] == 7 and found["names"] == ["a", "b"]


def test_what_it_lists_is_compared(theirs, tmp_path):
    """In its integrity.json: by ours, whole and with one byte that has changed."""
    megatron.verify_integrity_manifest(theirs)
    copy = shutil.copytree(theirs, tmp_path / "t")
    with shardwright.open(copy) as checkpoint:
        assert not checkpoint.verify(deep=True).to_dict()["damage"]
    data = next(copy.glob("*.distcp"))
    data.write_bytes(data.read_bytes()[:-1] + b"x")  # in the zeros behind the last record
    with pytest.raises(megatron.CheckpointingException, match=data.name):
        megatron.verify_integrity_manifest(copy)
    with shardwright.open(copy) as checkpoint:
        damage = checkpoint.find_damage(deep=True).to_dict()["damage"]
    assert any(data.name in str(each) for each in damage), damage


@pytest.mark.parametrize("layout", ["file", "object"])
def test_it_loads_and_verifies_what_ours_save_in_its_place(layout, tmp_path):
    (tmp_path / "t").mkdir()
    state = {name: megatron.ShardedTensor.from_rank_offsets(name, value) for name, value in tensors().items()}
    megatron.save(state | {"iteration": 7}, tmp_path / "t", verify_integrity=True, common_layout=layout)
    assert "iteration 7" in check_load(tmp_path / "t", tensors(), tmp_path, "verify")


def test_it_saves_and_loads_with_ours_in_its_place(tmp_path):
    call("install", tmp_path)


@pytest.mark.parametrize("common", ["file", "object"])
def test_it_verifies_what_a_save_lists(common, tmp_path):
    shardwright.torch.save(tensors() | {"common": {"iteration": 7}}, tmp_path / "t", format="megatron", common=common, integrity="sha256")
    check_load(tmp_path / "t", tensors(), tmp_path, "verify")
    data = next((tmp_path / "t").glob("__0_0.*.distcp"))
    data.write_bytes(data.read_bytes()[:-1] + b"x")  # in the zeros behind the last record
    with pytest.raises(AssertionError, match=data.name):
        check_load(tmp_path / "t", tensors(), tmp_path, "verify")


def test_what_a_reshard_of_its_checkpoint_writes_it_loads(theirs, tmp_path):
    shardwright.reshard(theirs, tmp_path / "t", tensor_parallel=1)
    assert digests(tmp_path / "t") == digests(theirs)
    assert "iteration 7" in check_load(tmp_path / "t", tensors(), tmp_path)


@pytest.mark.parametrize("case", ["gpt_tp2pp2", "moe_ep2", "gpt_dp2_buckets_zero"])
def test_what_a_reshard_of_an_older_checkpoint_writes_it_loads(case, tmp_path):
    golden = SOURCE / "tests/golden/megatron_reshard" / case
    shardwright.reshard(golden / "ckpt", tmp_path / "t", tensor_parallel=1, pipeline_parallel=1, expert_parallel=1)
    said = json.loads((golden / "digests.json").read_text())
    assert digests(tmp_path / "t") == {name: each["digest"] for name, each in said.items()}
    expected = {}
    with shardwright.open(tmp_path / "t") as checkpoint:
        for name in checkpoint:
            expected[name] = torch.empty(checkpoint[name].shape, dtype=getattr(torch, str(checkpoint[name].dtype)))
    shardwright.load(tmp_path / "t", into=expected)
    assert "iteration 2" in check_load(tmp_path / "t", expected, tmp_path)
