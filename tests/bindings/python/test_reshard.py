# SPDX-License-Identifier: Apache-2.0
"""shardwright.reshard over checkpoints that megatron-core wrote: sizes, a job, a map, and what is refused."""
import json
import os
from pathlib import Path

import pytest

import shardwright

GOLDEN = Path(os.environ["SHW_SOURCE_DIR"]) / "tests/golden/megatron_reshard"


def digests(path):
    with shardwright.open(path) as checkpoint:
        return {name: checkpoint[name].digest() for name in checkpoint}


def expected(case):
    said = json.loads((GOLDEN / case / "digests.json").read_text())
    return {name: entry["digest"] for name, entry in said.items()}


def test_a_job_of_another_shape_gets_what_the_source_holds(tmp_path):
    report = shardwright.reshard(GOLDEN / "gpt_tp2pp2" / "ckpt", tmp_path / "t", tensor_parallel=1, pipeline_parallel=1)
    assert report.tensors == 52
    assert digests(tmp_path / "t") == expected("gpt_tp2pp2")


def test_the_job_is_said_as_a_mapping_or_as_text(tmp_path):
    job = {"tensor_model_parallel_size": 4, "pipeline_model_parallel_size": 1}
    shardwright.reshard(GOLDEN / "gpt_tp2pp2" / "ckpt", tmp_path / "a", job=job)
    shardwright.reshard(GOLDEN / "gpt_tp2pp2" / "ckpt", tmp_path / "b", job=json.dumps(job))
    assert {each.name for each in (tmp_path / "a").iterdir()} == {each.name for each in (tmp_path / "b").iterdir()}
    assert len(list((tmp_path / "a").glob("*.distcp"))) == 4


def test_a_map_pads_and_makes_buckets(tmp_path):
    pad = {"pad": {"axis": 0, "size": 192, "real": 128}}
    rules = [{"match": "output_layer.weight", "steps": [pad]}, {"match": "*word_embeddings.weight", "steps": [pad]}]
    shardwright.reshard(GOLDEN / "gpt_tp2dp2_bf16" / "ckpt", tmp_path / "t", tensor_parallel=1, data_parallel=2,
                        optimizer="dp_reshardable", map={"bucket_size": 4000, "mapping": {"schema": 1, "rules": rules}})
    with shardwright.open(tmp_path / "t") as checkpoint:
        assert checkpoint["output_layer.weight"].shape == (192, 16)
        buckets = [name for name in checkpoint if name.startswith("optimizer.") and name.endswith(".exp_avg")]
    assert len(buckets) > 1


def test_experts_and_stages_are_shared_out_as_is_said(tmp_path):
    map_ = {"bucket_size": None}
    shardwright.reshard(GOLDEN / "moe_ep2" / "ckpt", tmp_path / "experts", tensor_parallel=2, expert_parallel=2, data_parallel=2,
                        expert_tensor_parallel=2, optimizer="dp_reshardable", map=map_)
    shardwright.reshard(GOLDEN / "gpt_tp2pp2" / "ckpt", tmp_path / "stages", tensor_parallel=1, pipeline_layers=(2, 0),
                        optimizer="dp_reshardable", map=map_)
    with shardwright.open(tmp_path / "experts") as checkpoint:
        sizes = [checkpoint[name].shape for name in checkpoint if name.startswith("chained_1.") and name.endswith(".exp_avg")]
        assert sizes == [(2 * (64 * 16 + 16 * 32),)] * 4
    with shardwright.open(tmp_path / "stages") as checkpoint:
        sizes = {name.split(".")[2]: checkpoint[name].shape for name in checkpoint if name.endswith("bucket_idx_0.exp_avg")}
    assert sizes["dp_group_idx_1"] == (128 * 16 + 64 + 16,)  # the output layer and the last norm


def test_a_dry_run_writes_nothing(tmp_path):
    report = shardwright.reshard(GOLDEN / "moe_ep2" / "ckpt", tmp_path / "t", expert_parallel=1, dry_run=True)
    assert any("nothing was written" in note for note in report.notes)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(("options", "kind", "words"), [
    ({"tensor_parallel": 3}, shardwright.InvalidArgumentError, "tensor-parallel"),
    ({"tensor_parallel": -1}, shardwright.InvalidArgumentError, "tensor_parallel"),
    ({"job": "{"}, shardwright.InvalidArgumentError, "line 1"),
    ({"job": {"tp": 1}}, shardwright.InvalidArgumentError, "tensor_model_parallel_size"),
    ({"job": {"tensor_model_parallel_size": object()}}, shardwright.InvalidArgumentError, "JSON"),
    ({"map": {"buckets": [{"bucket": "b", "begin": 0, "parts": [{"tensor": "w", "offsets": [0], "sizes": [1]}]}]}},
     shardwright.InvalidArgumentError, "no such bucket"),
    ({"pipeline_layers": [3, 1]}, shardwright.InvalidArgumentError, r"4 layers \(3, 1\), and the model 2"),
    ({"pipeline_layers": [1, 1], "pipeline_parallel": 3}, shardwright.InvalidArgumentError, "pp is 3"),
    ({"pipeline_layers": "3,1"}, shardwright.InvalidArgumentError, "list of integers"),
    ({"pipeline_layers": [2, -1]}, shardwright.InvalidArgumentError, "pipeline_layers is -1"),
    ({"expert_tensor_parallel": -1}, shardwright.InvalidArgumentError, "expert_tensor_parallel is -1"),
    ({"job": {"pipeline_layers": 2}}, shardwright.InvalidArgumentError, "layers of each pipeline stage"),
    ({"optimizer": "other"}, shardwright.InvalidArgumentError, "fully_reshardable"),
    ({"optimizer": "dp_reshardable", "tensor_parallel": 1}, shardwright.FailedPreconditionError, "bucket_size"),
    ({"map": {"mapping": {"schema": 1, "rules": [{"match": "nothing"}]}}}, shardwright.InvalidArgumentError, "rule 1"),
    ({"unknown": 1}, shardwright.InvalidArgumentError, "unknown"),
])
def test_what_does_not_fit_is_refused_before_anything_is_written(tmp_path, options, kind, words):
    with pytest.raises(kind, match=words):
        shardwright.reshard(GOLDEN / "gpt_tp2dp2_bf16" / "ckpt", tmp_path / "t", **options)
    assert not (tmp_path / "t").exists()


def test_the_source_stays_as_it_was(tmp_path):
    source = GOLDEN / "moe_ep2" / "ckpt"
    before = {each.name: each.stat().st_mtime_ns for each in source.iterdir()}
    shardwright.reshard(source, tmp_path / "t", expert_parallel=1)
    assert {each.name: each.stat().st_mtime_ns for each in source.iterdir()} == before
    with pytest.raises(shardwright.InvalidArgumentError, match="one place|in one another"):
        shardwright.reshard(source, source / "below")
