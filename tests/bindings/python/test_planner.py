# SPDX-License-Identifier: Apache-2.0
"""Plans that the host moves itself, as files or messages would, and what plan buffers say."""
import json

import numpy as np
import pytest
import shardwright

WHOLE = np.arange(30.0).reshape(10, 3)
PARTS = [(0, 4), (4, 3), (7, 3)]


def state_of(rank):
    start, count = PARTS[rank]
    local = WHOLE[start:start + count].copy()
    return {"w": shardwright.Shard(local, (10, 3), boxes=(((start, 0), (count, 3)),)), "same": np.ones(4), "step": 3}


def plan_and_save(path, storage=None, states=None):
    """Every step of every rank; gives what the ranks exchanged."""
    planners = [shardwright.SavePlanner(s, path=path, storage=storage, rank=r, world_size=3)
                for r, s in enumerate(states or map(state_of, range(3)))]
    local = [p.local_plan() for p in planners]
    parts = planners[0].global_plan(local)
    plans = [p.finish(part) for p, part in zip(planners, parts, strict=True)]
    results = [p.execute() for p in planners]
    return planners, local, plans, results, planners[0].commit(results)


@pytest.mark.parametrize("make", [lambda: None, shardwright.MemoryStorage])
def test_three_ranks_without_a_collective_make_one_checkpoint(make, tmp_path):
    storage = make()
    path = "run/p" if storage else tmp_path / "p"
    _, local, plans, _, report = plan_and_save(path, storage)
    assert report.operation == "save" and [p.rank for p in plans] == [0, 1, 2]
    with shardwright.open(path, storage=storage) as c:
        assert (c["w"][:] == WHOLE).all() and c["same"][:].tolist() == [1] * 4 and c.object("step") == 3
        assert c.world_size == 3 and sum(chunk.nbytes for chunk in c["same"].chunks()) == 32
    assert sum(len(p) for p in plans) == 3 + 1 + 1


def test_plans_say_what_they_hold(tmp_path):
    _, local, plans, results, _ = plan_and_save(tmp_path / "p")
    for data in local + results:
        shardwright.validate_plan(data)
        assert shardwright.plan_findings(data) == [] and json.loads(shardwright.plan_info(data))["schema"] == 1
    assert [shardwright.Plan.from_bytes(d).kind for d in (local[1], results[1])] == ["local_save", "write_result"]
    plan = plans[1]
    assert plan.kind == "write_list" and shardwright.Plan.from_bytes(plan.to_bytes()).items() == plan.items()
    items = plan.items()
    assert any(not i.is_object and i.nbytes == 72 for i in items) and plan.to_dict()["schema"] == 1
    assert "write_list" in repr(plan)


def test_a_load_plan_is_a_list_of_reads(tmp_path):
    plan_and_save(tmp_path / "p")
    target = {"w": np.zeros((10, 3)), "step": 0}
    with shardwright.open(tmp_path / "p") as c, shardwright.LoadPlanner(c, target) as planner:
        plan = planner.local_plan()
        assert plan.kind == "load" and len([i for i in plan.items() if not i.is_object]) == 3
        report = planner.execute(plan)
        assert (target["w"] == WHOLE).all() and target["step"] == 3 and report.unexpected == ["same"]
        with pytest.raises(shardwright.FailedPreconditionError):
            shardwright.LoadPlanner(c, target).execute()


def test_a_rank_that_failed_leaves_the_old_checkpoint(tmp_path):
    plan_and_save(tmp_path / "p")
    planners = [shardwright.SavePlanner({"w": np.zeros(3) if r == 0 else np.zeros(3)}, path=tmp_path / "p", rank=r, world_size=2)
                for r in range(2)]
    parts = planners[0].global_plan([p.local_plan() for p in planners])
    for p, part in zip(planners, parts, strict=True):
        p.finish(part)
    planners[0].execute()
    with pytest.raises(shardwright.AbortedError):
        planners[0].commit([None, None])
    with shardwright.open(tmp_path / "p") as c:
        assert (c["w"][:] == WHOLE).all()


def test_a_planner_without_a_path_asks_for_one():
    planner = shardwright.SavePlanner({"w": np.ones(1)})
    with pytest.raises(shardwright.InvalidArgumentError, match="path"):
        planner.global_plan([planner.local_plan()])


def test_local_plans_do_not_depend_on_the_path_or_the_time(tmp_path):
    plans = [shardwright.SavePlanner(state_of(1), path=tmp_path / name, rank=1, world_size=3).local_plan() for name in "ab"]
    assert plans[0] == plans[1]
