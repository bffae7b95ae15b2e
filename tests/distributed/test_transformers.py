# SPDX-License-Identifier: Apache-2.0
"""Directories of safetensors files as transformers reads and writes them, with a model small enough to make here."""
import json

import pytest
import shardwright

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def small_model(seed, **changes):
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, vocab_size=99, max_position_embeddings=16, **changes)
    return transformers.LlamaForCausalLM(config)


def equal(found, wanted):
    assert found.keys() == wanted.keys()
    return all(found[name].dtype == wanted[name].dtype and torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("max_shard_size", [None, 20_000], ids=["one file", "several files"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_transformers_loads_what_was_saved(tmp_path, max_shard_size, dtype):
    model = small_model(1).to(dtype)
    options = {} if max_shard_size is None else {"max_shard_size": max_shard_size}
    shardwright.save(model.state_dict(), tmp_path / "m", format="safetensors", **options)
    model.config.save_pretrained(tmp_path / "m")
    index = json.loads((tmp_path / "m" / "model.safetensors.index.json").read_text())
    files = set(index["weight_map"].values())
    assert index["weight_map"].keys() == model.state_dict().keys()
    assert (len(files) > 1) == (max_shard_size is not None)
    assert index["metadata"]["total_size"] == sum(t.nbytes for t in model.state_dict().values())
    loaded, report = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "m", output_loading_info=True, dtype=dtype)
    assert not any(report.values()), report
    assert equal(loaded.state_dict(), model.state_dict())


def test_what_transformers_saved_is_loaded_and_continued(tmp_path):
    model = small_model(2)
    model.save_pretrained(tmp_path / "m", max_shard_size="20KB")
    target = small_model(3)
    state = target.state_dict()
    shardwright.load(tmp_path / "m", into=state)
    assert equal(state, model.state_dict())
    # Saved over itself in the same place, with other values.
    with torch.no_grad():
        model.lm_head.weight += 1
    shardwright.save(model.state_dict(), tmp_path / "m", format="safetensors", max_shard_size=30_000)
    loaded = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "m")
    assert equal(loaded.state_dict(), model.state_dict())


def test_a_converted_checkpoint_is_a_model(tmp_path):
    model = small_model(4)
    shardwright.save(model.state_dict(), tmp_path / "native")
    shardwright.convert(tmp_path / "native", tmp_path / "m", format="safetensors", max_shard_size=25_000)
    model.config.save_pretrained(tmp_path / "m")
    loaded = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "m")
    assert equal(loaded.state_dict(), model.state_dict())
