# SPDX-License-Identifier: Apache-2.0
"""A rank whose process dies while it writes: all others have an error soon, and the checkpoint before is whole."""
import importlib.util
import signal

import pytest
import ranks
import shardwright

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not importable")

WORLD = 3
SOON_SECONDS = 10.0


@pytest.mark.parametrize(("how", "victim"), [("now", 1), ("background", 0), ("format", 2)])
def test_all_others_have_an_error_soon(how, victim, tmp_path):
    outcomes, errors = ranks.launch(WORLD, tmp_path, how, str(victim), seconds=120, program="lost_writer_rank.py")
    assert len(errors) == 1 and f"rank {victim} ended with -{signal.SIGBUS.value}" in errors[0], errors
    told = [each for rank, each in enumerate(outcomes["lost"]) if rank != victim]
    assert all(each["is_ours"] and each["seconds"] < SOON_SECONDS for each in told), told
    with shardwright.open(tmp_path / "c", format="torch_dcp") as checkpoint:
        assert set(checkpoint["w"].numpy()) == {1.0}
    # A save of torch.megatron takes it away first; rank 0 brings it back, if it can.
    assert (tmp_path / "c" / "metadata.json").exists() == (victim != 0)
