# SPDX-License-Identifier: Apache-2.0
"""What the extension module allocates is given back: saves, loads, jobs, layouts, plans, hosts' storages and failures, in
a process whose end is looked at by LeakSanitizer. Nothing here outlives `main`, so what is left was lost by native code.
numpy is kept out, as it leaves objects of its own behind."""
import array
import gc
import sys
import tempfile
from pathlib import Path

sys.modules["numpy"] = None
import host_storage  # noqa: E402
import shardwright  # noqa: E402
import shardwright.global_plan  # noqa: E402


def save_and_load(folder):
    state = {"w": array.array("f", range(6)), "deep": {"b": array.array("d", [1] * 3), "step": 7, "text": b"bytes"}}
    shardwright.save(state, folder / "p", metadata={"step": "7"})
    shardwright.save_async(state, folder / "p").result(60)
    shardwright.load(folder / "p", into=state)
    whole = shardwright.load(folder / "p")
    assert memoryview(whole["w"]).tolist() == state["w"].tolist()
    with shardwright.open(folder / "p") as checkpoint:
        checkpoint.verify(deep=True)
        assert memoryview(checkpoint["w"][1:3]).tolist() == [1, 2]
        assert checkpoint.digest() and checkpoint.info()


def plan(folder):
    planner = shardwright.SavePlanner({"w": array.array("f", [1] * 6)}, path=folder / "planned")
    local = planner.local_plan()
    assert not shardwright.plan_findings(local)
    part = planner.global_plan([local])[0]
    planner.finish(part)
    planner.commit([planner.execute()])
    shardwright.Layout((2, 2), [0, 1], ranks=[0, 1, 2, 3])


def plan_by_descriptions(folder):
    del folder
    batch = shardwright.planning.EntryBatch(1, [b"w"], [0, 1], [shardwright.dtype_number("float32")], shapes=[4],
                                            shape_offsets=[0, 1], box_ranges=[0, 1], box_offsets=[0], box_sizes=[4])
    described = shardwright.planning.describe(batch, kinds=[("*", "replicated")], agreement="a=b")
    merged = shardwright.planning.merge([described], owner="exact")
    assert list(shardwright.planning.match(merged.plan, shardwright.planning.entries(described)).sizes) == [4]
    mine = shardwright.global_plan.describe(batch, rank=0, world_size=1)
    made = shardwright.global_plan.GlobalPlan([mine.digest], [mine.description], [memoryview(mine.part)])
    assert made.expand("0" * 32).plan
    batch.shape_offsets = [0, 2]
    for call in (lambda: shardwright.planning.describe(batch), lambda: shardwright.Layout((2, 2), [0, 1], names=["a"])):
        try:
            call()
        except shardwright.InvalidArgumentError:
            continue
        raise AssertionError("a call that must fail did not")


def fail(folder):
    for call in (lambda: shardwright.open(folder / "nothing"), lambda: shardwright.save({"w": {1}}, folder / "q"),
                 lambda: shardwright.load(folder / "p", into={"v": array.array("f", [1])}), lambda: shardwright.validate_plan(b"x" * 40),
                 lambda: shardwright.Layout((2,), ["sideways"])):
        try:
            call()
        except shardwright.ShardwrightError:
            continue
        raise AssertionError("a call that must fail did not")


def host(folder):
    del folder
    storage = host_storage.DictStorage()
    shardwright.save({"w": array.array("f", [1] * 1000)}, "p", storage=storage)
    assert sum(memoryview(shardwright.load("p", storage=storage)["w"])) == 1000
    storage.failure = OSError("no more")
    try:
        shardwright.save({"w": array.array("f", [1] * 1000)}, "q", storage=storage)
    except OSError:
        return
    raise AssertionError("the storage's failure was lost")


def main():
    with tempfile.TemporaryDirectory() as folder:
        for step in (save_and_load, plan, plan_by_descriptions, fail, host):
            for _ in range(3):
                step(Path(folder))
    gc.collect()
    print("5 passed, 0 failed, 0 skipped")


main()
