# SPDX-License-Identifier: Apache-2.0
"""A rank whose process is killed: the others get a status soon; the plugin's collective names it, and so does memory."""
import importlib.util

import pytest
import ranks

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not importable")


@pytest.mark.parametrize("kind", ["c10d", "python", "auto"])
@pytest.mark.parametrize("victim", [0, 2])  # the first one holds the store of torch.distributed
def test_the_others_are_told(kind, victim, tmp_path, monkeypatch):
    monkeypatch.setenv("SHW_TORCH_COLLECTIVE", kind)
    outcomes, errors = ranks.launch(3, tmp_path, str(victim), seconds=120, program="lost_rank.py")
    told = [each for rank, each in enumerate(outcomes["lost"]) if rank != victim]
    assert len(errors) == 1 and f"rank {victim} ended with -9" in errors[0], errors
    assert {each["kind"] for each in told} == {"UnavailableError" if kind == "auto" else "AbortedError"}, told
    if kind == "auto":
        assert {each["rank"] for each in told} == {str(victim)}, told
    if kind == "c10d" and victim != 0:
        assert {each["rank"] for each in told} == {str(victim)}, told
        assert all(f"rank {victim} is gone" in each["text"] and "all_gather" in each["text"] for each in told), told
