# SPDX-License-Identifier: Apache-2.0
"""One of four ranks: the first 1, 2, 3 or 4 of them save the shared state on every layout, with torch and with us, and load what
torch, we, and every language wrote on others. Prints one JSON line per case."""
import faulthandler
import json
import sys
import traceback
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as theirs
from shared_state import LAYOUTS, OBJECTS, box_of, part_of, placements_of, ranks_of, values
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

import shardwright.torch.dcp as dcp

SECONDS = 500


def flat_to_nested(flat):
    nested = {}
    for name, value in flat.items():
        *above, last = name.split(".")
        inner = nested
        for key in above:
            inner = inner.setdefault(key, {})
        inner[last] = value
    return nested


def nested_to_flat(state):
    return {f"{key}.{inner}" if isinstance(value, dict) else key: leaf for key, value in state.items()
            for inner, leaf in (value.items() if isinstance(value, dict) else [(None, value)])}


def state_on(layout, mesh, filled):
    """What this rank holds: DTensors of the mesh, or plain tensors where there is one rank."""
    flat = {}
    for name, value in values().items():
        value = value if filled else torch.zeros_like(value)
        if ranks_of(layout) > 1:
            part = part_of(value, box_of(layout, value.shape, dist.get_rank())).clone()
            value = DTensor.from_local(part, mesh, placements_of(layout, value.ndim), run_check=False, shape=value.shape,
                                       stride=value.stride())
        flat[name] = value
    return flat_to_nested(flat | (OBJECTS if filled else dict.fromkeys(OBJECTS)))


def check(state, layout):
    found = nested_to_flat(state)
    for name, value in values().items():
        local = found[name].to_local() if isinstance(found[name], DTensor) else found[name]
        wanted = value if ranks_of(layout) == 1 else part_of(value, box_of(layout, value.shape, dist.get_rank()))
        bits = [t.contiguous().reshape(-1).view(torch.uint8) for t in (local, wanted)]
        assert torch.equal(*bits), (layout, name)
    assert {name: found[name] for name in OBJECTS} == OBJECTS, layout


class Groups:
    """Process group and mesh of each layout; made by all ranks together."""

    def __init__(self):
        self.groups = {size: dist.new_group(list(range(size))) for size in range(1, 5)}
        self.meshes = {layout: DeviceMesh("cpu", torch.arange(ranks_of(layout)).reshape(shape))
                       for layout, (shape, _) in LAYOUTS.items()}

    def options(self, layout):
        size = ranks_of(layout)
        return {"no_dist": True} if size == 1 else {"process_group": self.groups[size]}


def save_all(folder, groups):
    for layout in LAYOUTS:
        if dist.get_rank() < ranks_of(layout):
            state = state_on(layout, groups.meshes[layout], True)
            theirs.save(state, checkpoint_id=folder / "torch" / layout / "p", **groups.options(layout))
            dcp.save(state, checkpoint_id=folder / "ours" / layout / "p", **groups.options(layout))
        dist.barrier()


def load_all(folder, writer, groups):
    """Each directory of a writer on some layouts, of which one has other ranks: torch's by us, all others by torch."""
    load = dcp.load if writer == "torch" else theirs.load
    for i, written in enumerate(LAYOUTS):
        for j, wanted in enumerate(LAYOUTS):
            if (j - i) % 3 == 1 and dist.get_rank() < ranks_of(wanted):
                state = state_on(wanted, groups.meshes[wanted], False)
                load(state, checkpoint_id=folder / writer / written / "p", **groups.options(wanted))
                check(state, wanted)
        dist.barrier()


def report(case, work):
    try:
        work()
        outcome = "ok"
    except BaseException:
        outcome = traceback.format_exc(limit=-6)
    print(json.dumps({"case": case, "outcome": outcome}), flush=True)
    if outcome != "ok":
        raise SystemExit(1)  # the others meet no more


def main():
    folder, writers = Path(sys.argv[1]), sys.argv[2:]
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    groups = Groups()
    report("save", lambda: save_all(folder, groups))
    for writer in ("torch", "ours", *writers):
        report(writer, lambda writer=writer: load_all(folder, writer, groups))
    faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
