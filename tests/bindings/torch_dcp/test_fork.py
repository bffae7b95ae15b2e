# SPDX-License-Identifier: Apache-2.0
"""What an import does to children that are forked later: nothing. What use does to them: they are told."""
import os
import subprocess
import sys
import textwrap

SECONDS = 120


def run(program):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=env, timeout=SECONDS, capture_output=True,
                          text=True, check=False)


PROGRAM = """
    import os, sys
    import torch
    import shardwright
    import shardwright.hyperparallel
    import shardwright.torch
    import shardwright.torch.megatron
    import shardwright.torch.dcp.planner as ours
    import shardwright.torch.hyperparallel

    def plan():
        planner = ours.DefaultSavePlanner()
        planner.set_up_planner({{"a": torch.ones(4), "step": 1}}, None, True)
        (mine,), metadata = planner.create_global_plan([planner.create_local_plan()])
        return len(mine.items), list(metadata.state_dict_metadata)

    {before}
    child = os.fork()
    if child == 0:
        try:
            print(plan(), flush=True)
        except shardwright.FailedPreconditionError as e:
            print(e, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(plan())
"""
PLANNED = "(2, ['a', 'step'])"


def test_a_child_plans_after_its_parent_imported_everything():
    done = run(PROGRAM.format(before="pass"))
    assert done.stdout.splitlines() == [PLANNED] * 2, done.stderr


def test_a_child_of_a_process_that_planned_is_told_what_to_do():
    done = run(PROGRAM.format(before="plan()"))
    told, planned = done.stdout.splitlines()
    assert "forked from one that had used the library" in told and "spawn" in told, done.stderr
    assert planned == PLANNED
