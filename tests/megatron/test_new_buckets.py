# SPDX-License-Identifier: Apache-2.0
"""Buckets that a reshard makes for a job of another shape: megatron-core loads them there, goes on as from a checkpoint that any
shape loads, and cuts its own buckets alike."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import originals
import pytest

import shardwright

pytestmark = pytest.mark.skipif(not originals.is_installed(), reason="megatron-core is not installed")
KINDS = ("dp_reshardable", "fully_reshardable")
BUCKETS = ("--bucket-size", 3000)
EXPERTS = ("--experts", 4)
LAYERS = ("--layers", 4)


class Jobs:
    """Jobs of examples/megatron_gpt/train.py, one after the other, in forks of one process."""

    def __init__(self):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen([sys.executable, str(Path(__file__).with_name("forked_ranks.py"))], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, size, *words):
        """(exit codes, all that the ranks printed)."""
        self.process.stdin.write(json.dumps([size, [str(word) for word in words]]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def trained(self, size, *words):
        """Losses by their steps."""
        codes, text = self.run(size, *words)
        assert not any(codes), f"{size} ranks with {words} ended with {codes}:\n{text[-4000:]}"
        return {int(step): float.fromhex(loss) for step, loss in re.findall(r"step (\d+) loss (\S+)", text)}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture(scope="module")
def original():
    """Runs jobs of the original."""
    made = Jobs()
    yield made
    made.close()


@pytest.fixture(scope="module")
def saved(original, tmp_path_factory):
    """The folder that a job has left after two steps, with the optimizer of each kind; one for several targets."""
    folders = {}

    def made(words, ranks, model):
        key = (words, ranks, model)
        if key not in folders:
            folders[key] = tmp_path_factory.mktemp("source")
            save = [word for kind in KINDS for word in ("--save", f"{kind}={folders[key]}/{kind}")]
            original.trained(ranks, *words, *model, "--steps", 2, *save)
        return folders[key]
    return made


def buckets_of(path):
    """Name to shape of the tensors of buckets, and what objects say of their sizes."""
    with shardwright.open(path) as checkpoint:
        shapes = {name: checkpoint[name].shape for name in checkpoint if ".bucket_idx_" in name}
        sizes = {name: checkpoint.open_object(name).read() for name in checkpoint.object_names() if "per_bucket_numel" in name}
    return shapes, sizes


# A job is its arguments and its ranks.
@pytest.mark.parametrize(("model", "before", "after", "sizes"), [
    pytest.param(BUCKETS, (("--tp", 2), 2), (("--tp", 1), 2), {"tensor_parallel": 1, "data_parallel": 2}, id="tp2-to-dp2"),
    pytest.param(BUCKETS, (("--tp", 2), 2), (("--pp", 2), 2), {"tensor_parallel": 1, "pipeline_parallel": 2}, id="tp2-to-pp2"),
    pytest.param(EXPERTS, (("--ep", 2), 2), (("--ep", 1), 1), {"expert_parallel": 1}, id="ep2-to-ep1"),
    # One optimizer becomes two, and one of two ranks of each expert.
    pytest.param(EXPERTS, ((), 2), (("--ep", 2), 2), {"expert_parallel": 2, "data_parallel": 2}, id="ep1-to-ep2"),
    # Experts over tensor-parallel ranks: with all else, apart and whole, apart and over ranks. Of two tensor-parallel ranks with
    # small buckets the original would save shifted states as a control.
    pytest.param(EXPERTS, (("--ep", 2), 2), (("--tp", 2), 2), {"tensor_parallel": 2, "expert_parallel": 1}, id="ep2-to-tp2"),
    pytest.param(EXPERTS, ((), 2), (("--tp", 2, "--ep", 2, "--etp", 1), 2),
                 {"tensor_parallel": 2, "expert_parallel": 2, "expert_tensor_parallel": 1}, id="ep1-to-tp2-ep2-etp1"),
    pytest.param((*EXPERTS, *BUCKETS), (("--ep", 2), 2), (("--tp", 2, "--ep", 2), 4),
                 {"tensor_parallel": 2, "expert_parallel": 2, "data_parallel": 2}, id="ep2-to-tp2-ep2"),
    pytest.param(EXPERTS, (("--tp", 2, "--ep", 2), 4), (("--etp", 2, "--ep", 2), 4),
                 {"tensor_parallel": 1, "expert_parallel": 2, "expert_tensor_parallel": 2, "data_parallel": 4},
                 id="tp2-ep2-to-etp2-ep2"),
    pytest.param(EXPERTS, (("--tp", 2, "--ep", 2), 4), (("--ep", 2), 2),
                 {"tensor_parallel": 1, "expert_parallel": 2, "data_parallel": 2}, id="tp2-ep2-to-ep2"),
    # Stages with other numbers of layers; without any, the embedding is alone.
    pytest.param((*LAYERS, *BUCKETS), (("--tp", 2), 2), (("--pp", 2, "--stages", "3,1"), 2),
                 {"tensor_parallel": 1, "pipeline_layers": [3, 1]}, id="tp2-to-stages-3-1"),
    pytest.param((*LAYERS, *BUCKETS), (("--tp", 2), 2), (("--pp", 2, "--stages", "0,4"), 2),
                 {"tensor_parallel": 1, "job": {"pipeline_layers": [0, 4]}}, id="tp2-to-stages-0-4"),
    pytest.param((*LAYERS, *BUCKETS), (("--pp", 2, "--stages", "3,1"), 2), (("--pp", 2, "--tp", 2, "--stages", "3,1"), 4),
                 {"tensor_parallel": 2}, id="stages-stay"),
    pytest.param((*LAYERS, *BUCKETS), (("--pp", 2, "--stages", "3,1"), 2), (("--pp", 2, "--stages", "1,3"), 2),
                 {"pipeline_layers": [1, 3]}, id="stages-3-1-to-1-3"),
    pytest.param((*LAYERS, *EXPERTS), (("--ep", 2), 2), (("--pp", 2, "--ep", 2, "--stages", "1,3"), 4),
                 {"pipeline_layers": [1, 3], "expert_parallel": 2, "data_parallel": 2}, id="ep2-to-stages-1-3-ep2"),
])
def test_megatron_goes_on_with_buckets_of_a_new_shape(tmp_path, original, saved, model, before, after, sizes):
    source = saved(*before, model)
    bucket_size = BUCKETS[1] if "--bucket-size" in model else None
    for kind in KINDS:
        shardwright.reshard(source / kind, tmp_path / f"new-{kind}", **sizes,
                            **({"optimizer": kind, "map": {"bucket_size": bucket_size}} if kind == KINDS[0] else {}))
    words, ranks = after
    losses = {}
    for kind in KINDS:  # the second step shows the states of the optimizer
        losses[kind] = original.trained(ranks, *words, *model, "--load", tmp_path / f"new-{kind}", "--steps", 2, "--save",
                                    f"dp_reshardable={tmp_path}/after-{kind}")
    assert losses[KINDS[0]] == losses[KINDS[1]] and list(losses[KINDS[0]]) == [2, 3]
    made = buckets_of(tmp_path / "new-dp_reshardable")
    assert made[0] and made[1]
    assert made == buckets_of(tmp_path / "after-dp_reshardable") == buckets_of(tmp_path / "after-fully_reshardable")


@pytest.mark.parametrize(("words", "sizes", "refusal"), [
    pytest.param(("--pp", 2, "--ep", 2, "--stages", "0,4"), {"pipeline_layers": [0, 4], "data_parallel": 2},
                 "stage 0 of the pipeline would have no experts", id="no-experts"),
    pytest.param(("--pp", 4, "--stages", "1,0,2,1"), {"expert_parallel": 1, "pipeline_layers": [1, 0, 2, 1]},
                 "stage 1 of the pipeline would have no parameters", id="no-parameters"),
])
def test_what_megatron_cannot_save_is_refused(tmp_path, original, saved, words, sizes, refusal):
    model = (*LAYERS, *EXPERTS)
    codes, _ = original.run(4, *words, *model, "--steps", 1, "--save", f"dp_reshardable={tmp_path}/original")
    assert any(codes)
    with pytest.raises(shardwright.InvalidArgumentError, match=refusal):
        shardwright.reshard(saved(("--ep", 2), 2, model) / KINDS[0], tmp_path / "new", **sizes, optimizer=KINDS[0],
                            map={"bucket_size": None})
    assert not (tmp_path / "new").exists()
