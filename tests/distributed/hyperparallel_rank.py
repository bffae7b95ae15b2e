# SPDX-License-Identifier: Apache-2.0
"""One rank of a world whose checkpoints HyperParallel's own save and load move, with planners of this library."""
import io
import json
import os
import sys
import traceback
from pathlib import Path

os.environ["HYPER_PARALLEL_PLATFORM"] = "torch"

import torch
import torch.distributed as dist
from hyper_parallel import DTensor, get_platform, init_device_mesh
from hyper_parallel.core.checkpoint import StandardSavePlanner as TheirSavePlanner
from hyper_parallel.core.checkpoint import load, save
from hyper_parallel.core.placement_types import Partial, Replicate, Shard
from shardwright.torch.hyperparallel import StandardLoadPlanner, StandardSavePlanner

SCALARS = {"step": 7, "lr": 0.125, "name": "adam", "flag": True, "nothing": None}
PLACEMENTS = {"s0r": (Shard(0), Replicate()), "s0s1": (Shard(0), Shard(1)), "rr": (Replicate(), Replicate()),
              "rs1": (Replicate(), Shard(1))}


def readable_files():
    """torch 2.15 goes by the suffix and cannot read the archives that HyperParallel names ".safetensors"."""
    get_platform().load_checkpoint = lambda path, **_: torch.load(io.BytesIO(Path(path).read_bytes()))


def full(name):
    """Values of a tensor by its name."""
    return torch.arange(32, dtype=torch.float32).reshape(8, 4) + sum(map(ord, name))


def distributed(mesh, name, placements, values=None):
    """This rank's part of a tensor."""
    local = full(name) if values is None else torch.full((8, 4), values)
    coordinate = [(mesh.mesh == dist.get_rank()).nonzero()[0][axis].item() for axis in range(mesh.mesh.ndim)]
    for axis, placement in enumerate(placements):
        if placement.is_shard():
            local = local.chunk(mesh.mesh.shape[axis], placement.dim)[coordinate[axis]]
    return DTensor.from_local(local.clone(), mesh, placements)


def state_of(mesh, values=None):
    """10 distributed tensors, 5 scalars, 2 plain tensors."""
    kinds = list(PLACEMENTS.items())
    state = {
        f"{kinds[k % 4][0]}.{k}": distributed(mesh, f"{kinds[k % 4][0]}.{k}", kinds[k % 4][1], values)
        for k in range(10)
    }
    state |= dict(SCALARS) if values is None else dict.fromkeys(SCALARS)
    for name in ("plain.a", "plain.b"):
        state[name] = full(name) if values is None else torch.full((8, 4), values)
    return state


def check(state, expected):
    """Values and scalar types are those of the other state."""
    for name, value in expected.items():
        found = state[name]
        if isinstance(value, torch.Tensor):
            found, value = (t.to_local() if hasattr(t, "to_local") else t for t in (found, value))
            assert torch.equal(found, value), name
        else:
            assert found == value and type(found) is type(value), name


def round_trip(folder):
    """With and without collectives; a subset; names that are not stored."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    state = state_of(mesh)
    for collectives in (True, False):
        place = folder / f"collectives-{collectives}"
        save(state, checkpoint_id=place, planner=StandardSavePlanner(), use_collectives=collectives)
        dist.barrier()
        target = state_of(mesh, -1.0)
        load(target, checkpoint_id=place, planner=StandardLoadPlanner(), use_collectives=collectives)
        check(target, state)
    target = {name: value for name, value in state_of(mesh, -1.0).items() if name in ("rs1.3", "plain.a", "lr")}
    target["absent"] = torch.zeros(2)
    load(target, checkpoint_id=folder / "collectives-True", planner=StandardLoadPlanner(allow_partial_load=True))
    check(target, {name: state[name] for name in ("rs1.3", "plain.a", "lr")})
    try:
        load(target, checkpoint_id=folder / "collectives-True", planner=StandardLoadPlanner())
    except RuntimeError as e:
        assert "absent" in str(e)
    else:
        raise AssertionError("a name that is not stored was loaded")


def another_mesh(folder):
    """From (2, 2) to (4,) and to whole tensors."""
    state = state_of(init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp")))
    save(state, checkpoint_id=folder, planner=StandardSavePlanner(), save_to_minimum_rank=True)
    dist.barrier()
    line = init_device_mesh("cpu", (4,), mesh_dim_names=("x",))
    for placement in (Shard(0), Shard(1), Replicate()):
        target = {
            name: distributed(line, name, (placement,), -1.0)
            for name in state if name[0] in "sr" and "." in name
        }
        load(target, checkpoint_id=folder, planner=StandardLoadPlanner())
        check(target, {name: distributed(line, name, (placement,)) for name in target})
    target = {name: torch.zeros(8, 4) for name in state if "." in name}
    load(target, checkpoint_id=folder, planner=StandardLoadPlanner())
    check(target, {name: full(name) for name in target})


def its_own_checkpoints(folder):
    """What HyperParallel's planner saved, read by ours; its objects are pickles."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    state = state_of(mesh)
    save(state, checkpoint_id=folder, planner=TheirSavePlanner())
    dist.barrier()
    target = state_of(mesh, -1.0)
    load(target, checkpoint_id=folder, planner=StandardLoadPlanner(trust_pickle=True))
    check(target, state)
    try:
        load(state_of(mesh, -1.0), checkpoint_id=folder, planner=StandardLoadPlanner())
    except PermissionError as e:
        assert "trust_pickle" in str(e)
    else:
        raise AssertionError("a pickle was run")


def what_it_lost(folder):
    """Values that HyperParallel's planner loses in silence, and that ours refuses: K1 to K3, K11."""
    rank, mesh = dist.get_rank(), init_device_mesh("cpu", (4,), mesh_dim_names=("x",))
    own = {"moment": torch.full((2,), float(rank)), "rng": f"state of rank {rank}"}
    save(own, checkpoint_id=folder / "own", planner=TheirSavePlanner())
    summands = {"w": DTensor.from_local(torch.ones(2, 2), mesh, (Partial("sum"),))}
    save(summands, checkpoint_id=folder / "partial", planner=TheirSavePlanner())
    dist.barrier()
    from hyper_parallel.core.checkpoint import StandardLoadPlanner as TheirLoadPlanner
    lost = {"moment": torch.full((2,), -1.0), "rng": ""}
    load(lost, checkpoint_id=folder / "own", planner=TheirLoadPlanner())
    gathered = [None] * 4
    dist.all_gather_object(gathered, (lost["moment"].tolist(), lost["rng"]))
    assert len({str(values) for values in gathered}) == 1  # the original: one rank's values on all
    for state in (own, summands):
        planner = StandardSavePlanner()
        planner.configure_planner(state, rank=rank)
        try:
            plans = [None] * 4
            dist.all_gather_object(plans, planner.build_local_plan())
            planner.build_global_plan(plans)
        except (ValueError, RuntimeError) as e:
            assert "rank_local" in str(e) or "Partial" in str(e), e
        else:
            raise AssertionError("it was not refused")
    kept = StandardSavePlanner(entry_kinds={"*": "rank_local"})
    save(own, checkpoint_id=folder / "kept", planner=kept)
    dist.barrier()
    found = {"moment": torch.full((2,), -1.0), "rng": ""}
    load(found, checkpoint_id=folder / "kept", planner=StandardLoadPlanner())
    check(found, own)


def what_failed(folder):
    """What HyperParallel's own planners cannot bring back: bytes, nested states, trainable parameters (K11)."""
    trainable = torch.nn.Parameter(torch.zeros(3))
    state = {"raw": b"\x00\x80bytes", "nested": {"w": torch.ones(2), "deep": {"x": [1, 2]}}, "p": torch.ones(3)}
    save(state, checkpoint_id=folder, planner=StandardSavePlanner())
    dist.barrier()
    target = {"raw": None, "nested": {"w": torch.zeros(2), "deep": None}, "p": trainable}
    load(target, checkpoint_id=folder, planner=StandardLoadPlanner())
    assert target["raw"] == state["raw"] and target["nested"]["deep"] == {"x": [1, 2]}
    assert target["nested"]["w"].tolist() == [1, 1] and trainable.tolist() == [1, 1, 1] and trainable.requires_grad


CASES = (round_trip, another_mesh, its_own_checkpoints, what_it_lost, what_failed)


def main():
    dist.init_process_group("gloo")
    readable_files()
    for case in CASES:
        try:
            case(Path(sys.argv[1]) / case.__name__)
            outcome = "ok"
        except BaseException:
            outcome = traceback.format_exc(limit=-8)
        print(json.dumps({"case": case.__name__, "outcome": outcome}), flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
