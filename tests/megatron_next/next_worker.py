# SPDX-License-Identifier: Apache-2.0
"""One call of the newer megatron-core in a process of its own: `save FOLDER` or `load FOLDER VALUES [verify]`. It is in front of the
other one in PYTHONPATH, and runs without a GPU: two functions of torch.cuda are replaced."""
import sys
from pathlib import Path

import torch
import torch.distributed as dist


def tensors():
    numbers = torch.Generator().manual_seed(5)
    return {"decoder.weight": torch.randn(6, 4, generator=numbers), "decoder.bias": torch.randn(6, generator=numbers).bfloat16(),
            "optimizer.state.exp_avg.decoder.weight": torch.randn(6, 4, generator=numbers)}


def main():
    what, folder = sys.argv[1], Path(sys.argv[2])
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_device = lambda: torch.device("cpu")
    from megatron.core import __version__, dist_checkpointing
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    described = dist_checkpointing.ShardedTensor.from_rank_offsets
    if what == "save":
        folder.mkdir()
        state = {name: described(name, value) for name, value in tensors().items()}
        dist_checkpointing.save(state | {"iteration": 7, "names": ["a", "b"]}, folder)
    else:
        expected = torch.load(sys.argv[3])
        state = {name: described(name, torch.zeros_like(value)) for name, value in expected.items()}
        found = dist_checkpointing.load(state, folder, verify_integrity="verify" in sys.argv)
        for name, value in expected.items():
            assert found[name].dtype == value.dtype and torch.equal(found[name], value), name
        print("iteration", found.get("iteration"))
    print("version", __version__)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
