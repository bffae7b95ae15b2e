# SPDX-License-Identifier: Apache-2.0
"""One call of the newer megatron-core in a process of its own: `save FOLDER [verify]`, `load FOLDER VALUES [verify]`, or
`install FOLDER`, where it saves and loads with ours in its place. It is in front of the other one in PYTHONPATH, and runs without a
GPU: two functions of torch.cuda are replaced."""
import sys
from pathlib import Path

import torch
import torch.distributed as dist


def tensors():
    numbers = torch.Generator().manual_seed(5)
    return {"decoder.weight": torch.randn(6, 4, generator=numbers), "decoder.bias": torch.randn(6, generator=numbers).bfloat16(),
            "optimizer.state.exp_avg.decoder.weight": torch.randn(6, 4, generator=numbers)}


def described(kinds, state):
    return {name: kinds.ShardedTensor.from_rank_offsets(name, value) for name, value in state.items()}


def emptied(kinds, state):
    return described(kinds, {name: torch.zeros_like(value) for name, value in state.items()})


def assert_loaded(found, expected):
    for name, value in expected.items():
        assert found[name].dtype == value.dtype and torch.equal(found[name], value), name


def save(dist_checkpointing, folder, **options):
    folder.mkdir()
    state = described(dist_checkpointing, tensors())
    return dist_checkpointing.save(state | {"iteration": 7, "names": ["a", "b"]}, folder, **options)


def check_installed(dist_checkpointing, folder):
    """Its functions become ours; those that a module has imported by name before use ours below."""
    from megatron.core.dist_checkpointing.strategies import async_utils
    from shardwright.torch import megatron as ours
    by_name, load_by_name = dist_checkpointing.save, dist_checkpointing.load
    with ours.install():
        assert dist_checkpointing.save is ours.save and dist_checkpointing.load is ours.load
        save(dist_checkpointing, folder / "now", verify_integrity=True)
        request = save(dist_checkpointing, folder / "background", async_sharded_save=True)
        queue = async_utils.AsyncCallsQueue(persistent=True)
        queue.schedule_async_request(request)
        assert queue.maybe_finalize_async_calls(blocking=True) == [0]
        (folder / "by_name").mkdir()
        by_name(described(dist_checkpointing, tensors()) | {"iteration": 7}, folder / "by_name")
        for place in ("now", "background", "by_name"):
            for load in (dist_checkpointing.load, load_by_name):
                found = load(emptied(dist_checkpointing, tensors()), folder / place)
                assert_loaded(found, tensors())
                assert found["iteration"] == 7, found
            assert list((folder / place).glob(".shardwright.*.digests")), place
    found = dist_checkpointing.load(emptied(dist_checkpointing, tensors()), folder / "now", verify_integrity=True)
    assert_loaded(found, tensors())


def main():
    what, folder = sys.argv[1], Path(sys.argv[2])
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_device = lambda: torch.device("cpu")
    from megatron.core import __version__, dist_checkpointing
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    verify = "verify" in sys.argv
    if what == "save":
        save(dist_checkpointing, folder, verify_integrity=verify)
    elif what == "install":
        check_installed(dist_checkpointing, folder)
    else:
        expected = torch.load(sys.argv[3])
        found = dist_checkpointing.load(emptied(dist_checkpointing, expected), folder, verify_integrity=verify)
        assert_loaded(found, expected)
        print("iteration", found.get("iteration"))
    print("version", __version__)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
