# SPDX-License-Identifier: Apache-2.0
"""Plan caching: what travels between ranks when states change, and that no entry can be stale."""
import dataclasses
import functools
import pickle

import pytest
import torch
import torch.distributed.checkpoint.default_planner as original
from items import plans, shard, tensor
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.planner_helpers import _compare_save_plans

import shardwright.torch.dcp.planner as ours
from shardwright.torch.dcp.planner import _cache


class Ranks:
    """Ranks of one job in one process, each with a cache of its own, as in processes."""

    def __init__(self, count, planner_class=ours.DefaultSavePlanner, **options):
        self.planner_class, self.options = planner_class, options
        self.caches = [_cache._Recent() for _ in range(count)]

    def planner(self, rank, state):
        _cache.final_plans = self.caches[rank]
        made = self.planner_class(enable_plan_caching=True, **self.options)
        made.set_up_planner(state, None, rank == 0)
        return made

    def save(self, states, fails=False, writer="w"):
        """(received usable, scattered usable, items sent back, metadata, final plans)."""
        made, sent = [], []
        for rank, state in enumerate(states):
            made.append(self.planner(rank, state))
            sent.append(pickle.loads(pickle.dumps(dataclasses.replace(made[-1].create_local_plan(), storage_data=writer))))
        _cache.final_plans = self.caches[0]
        replies, metadata = made[0].create_global_plan(sent)
        if fails:
            return None
        final = []
        for rank, reply in enumerate(replies):
            _cache.final_plans = self.caches[rank]
            final.append(made[rank].finish_plan(pickle.loads(pickle.dumps(reply))))
        letters = ["".join("FT"[plan.usable] for plan in found) for found in (sent, replies)]
        return (*letters, [len(reply.items) for reply in replies], metadata, final)


@pytest.fixture(autouse=True)
def own_final_plans():
    kept = _cache.final_plans
    yield
    _cache.final_plans = kept


def state(**more):
    return {"a": torch.ones(4), "b": torch.ones(2), "step": 1} | more


def uncached(states):
    made = [ours.DefaultSavePlanner() for _ in states]
    for planner, held in zip(made, states, strict=True):
        planner.set_up_planner(held, None, True)
    return made[0].create_global_plan([planner.create_local_plan() for planner in made])


def test_an_unchanged_state_sends_digests_and_gets_nothing_back():
    ranks, states = Ranks(2), [state(), state()]
    first = ranks.save(states)
    again = ranks.save(states)
    assert first[:2] == ("TT", "TT") and again[:3] == ("FF", "FF", [0, 0])
    plain, metadata = uncached(states)
    assert again[4] == [dataclasses.replace(p, storage_data="w") for p in plain] and again[3] == metadata == first[3]
    assert again[3] is not first[3]


def test_each_rank_may_change_alone():
    ranks, states = Ranks(2), [state(), state()]
    ranks.save(states)
    changed = [state(), state(only=torch.ones(3))]
    found = ranks.save(changed)
    assert found[0] == "FT" and found[4] == [dataclasses.replace(p, storage_data="w") for p in uncached(changed)[0]]
    assert ranks.save(states)[:2] == ("FF", "FF") and ranks.save(changed)[:2] == ("FF", "FF")


class Looking(ours.DefaultSavePlanner):
    """A host that looks into the plans that it was given, after they were merged."""

    def create_global_plan(self, all_plans):
        found = super().create_global_plan(all_plans)
        self.seen = [list(plan.items) for plan in all_plans]
        return found


def test_a_host_that_looks_into_plans_takes_nothing_from_later_saves():
    ranks, states = Ranks(2, Looking), [state(), state()]
    ranks.save(states)
    assert ranks.save(states)[0] == "FF"
    changed = [state(), state(only=torch.ones(3))]
    found = ranks.save(changed)
    plain, metadata = uncached(changed)
    assert found[0] == "FT" and found[3] == metadata and [plan.items for plan in found[4]] == [plan.items for plan in plain]


VALUES = [([state(), state()], []), ([state(step=2), state(step=2)], []), ([state(step=2), state(step=999)], ["step"]),
          ([state(step=2, own=5), state(step=2)], []), ([state(own=5), state(own=6)], ["own"])]


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(("states", "names"), VALUES)
def test_values_of_replicas_are_compared_in_every_save(states, names, before):
    ranks = Ranks(2, verify_replicas="error")
    for _ in range(2 if before else 0):
        ranks.save([{name: 1 if name in ("step", "own") else v for name, v in held.items()} for held in states])
    if names:
        with pytest.raises(ours.InvalidPlanError, match=f"different values under one name.*: {names[0]}"):
            ranks.save(states)
    else:
        assert ranks.save(states)[0] == ("FF" if before else "TT")


def test_which_values_are_compared_is_part_of_the_key():
    ranks, odd = Ranks(2, verify_replicas="error"), {"x": {1, 2}}
    ranks.save([state(o=1), state(o=1)])
    assert ranks.save([state(o=odd), state(o=2)])[0] == "TF", "a set has no digest"
    assert ranks.save([state(o=odd), state(o=2)])[0] == "FF"
    with pytest.raises(ours.InvalidPlanError, match=": o"):
        ranks.save([state(o=1), state(o=2)])


def test_a_digest_is_missing():
    ranks, held = Ranks(1), [state()]
    ranks.save(held)
    sent = ranks.planner(0, held[0]).create_local_plan()
    short = dataclasses.replace(sent.planner_data, values=sent.planner_data.values[1:])
    with pytest.raises(ours.StalePlanError, match="rank 0"):
        ranks.planner(0, held[0]).create_global_plan([dataclasses.replace(sent, planner_data=short)])


def torch_saves(states_of_saves):
    """Metadata of each save with torch's cache, which one process shares between ranks."""
    caches = [SavePlanner._cached_save_plan, SavePlanner._cached_final_save_plan, SavePlanner._cached_all_plans,
              SavePlanner._cached_global_plan, SavePlanner._cached_metadata]
    found = []
    try:
        for held in states_of_saves:
            planner = original.DefaultSavePlanner(enable_plan_caching=True)
            planner.set_up_planner(held, None, True)
            replies, metadata = planner.create_global_plan([planner.create_local_plan()])
            planner.finish_plan(replies[0])
            found.append(metadata)
    finally:
        for cache in caches:
            cache.clear()
    return found


def test_a_dtype_that_changes_is_seen():
    saves = [{"a": torch.ones(4)}, {"a": torch.ones(4, dtype=torch.float16)}]
    assert torch_saves(saves)[1].state_dict_metadata["a"].properties.dtype == torch.float32, "torch keeps the old one"
    ranks = Ranks(1)
    ranks.save(saves[:1])
    found = ranks.save(saves[1:])
    assert found[0] == "T" and found[3].state_dict_metadata["a"].properties.dtype == torch.float16


def test_a_metadata_that_was_changed_is_not_given_out_again():
    held = [{"a": torch.ones(4)}]
    theirs = torch_saves(held * 2)
    assert theirs[0] is theirs[1], "torch hands out one object, which its writer changes"
    ranks = Ranks(1)
    first = ranks.save(held)[3]
    first.version, first.storage_data = "9", {}
    first.state_dict_metadata.clear()
    first.planner_data.clear()
    again = ranks.save(held)[3]
    assert again.version is None and list(again.state_dict_metadata) == ["a"] and again.planner_data == {"a": ("a",)}


def test_a_save_that_fails_leaves_no_entry_that_is_wrong():
    ranks, states = Ranks(2), [state(), state()]
    ranks.save(states)
    bad = torch.ones(2)
    bad.global_shape, bad.global_offsets, bad.local_offsets, bad.local_sizes = (4,), ((0,),), ((0,),), ((2,),)
    for _ in range(2):
        with pytest.raises(ValueError, match="Failed to validate"):
            ranks.save([state(p=bad), state(p=bad)])
    found = ranks.save(states)
    assert found[3] == uncached(states)[1]


def test_a_rank_that_was_not_answered_sends_everything_again():
    ranks, states = Ranks(2), [state(), state()]
    ranks.save(states)
    ranks.save(states, fails=True)
    assert ranks.save(states)[0] == "TT" and ranks.save(states)[0] == "FF"


def test_a_coordinator_that_forgot_says_so_and_the_next_save_works():
    ranks, states = Ranks(2), [state(), state()]
    ranks.save(states)
    _cache._descriptions.clear()
    with pytest.raises(ours.StalePlanError, match="rank 0"):
        ranks.save(states)
    assert ranks.save(states)[:2] == ("TT", "TT")


def test_a_final_plan_that_is_gone_is_an_error():
    planner = ours.DefaultSavePlanner(enable_plan_caching=True)
    with pytest.raises(ours.StalePlanError):
        planner.finish_plan(SavePlan([], usable=False))


def test_an_answer_for_another_description_is_an_error():
    ranks, held, other = Ranks(1), [state()], [state(more=torch.ones(3))]
    for states in (held, other):
        ranks.save(states)
    planner = ranks.planner(0, held[0])
    (reply,), _ = planner.create_global_plan([planner.create_local_plan()])
    stranger = ranks.planner(0, other[0])
    stranger.create_local_plan()
    with pytest.raises(ours.StalePlanError):
        stranger.finish_plan(reply)
    assert len(planner.finish_plan(reply).items) == 3


def test_the_number_of_ranks_may_change():
    held = state()
    three, two = Ranks(3), Ranks(2)
    three.save([held] * 3)
    two.caches = three.caches[:2]
    found = two.save([held] * 2)
    assert [p.items for p in found[4]] == [p.items for p in uncached([held] * 2)[0]] and found[3] == uncached([held] * 2)[1]
    cached = plans([tensor("a", 1)], [tensor("a", 1)])
    with pytest.raises(ValueError, match="2 ranks are cached and 1 ranks"):
        ours._merge_delta_local_plans(cached, cached[:1])


def test_what_another_writer_put_into_a_plan_is_not_carried_over():
    ranks, held = Ranks(1), [state()]
    ranks.save(held, writer="one")
    assert ranks.save(held, writer="two")[4][0].storage_data == "two"


def test_the_last_descriptions_are_kept_and_older_ones_go():
    ranks = Ranks(1)
    for size in range(_cache.SIZE + 1):
        ranks.save([{"a": torch.ones(size + 1)}])
    assert ranks.save([{"a": torch.ones(_cache.SIZE + 1)}])[0] == "F"
    assert ranks.save([{"a": torch.ones(1)}])[0] == "T"


def test_paths_are_part_of_the_key_and_options_of_what_the_coordinator_keeps():
    ranks = Ranks(2)
    ranks.save([{"a": {"b": torch.ones(2)}}] * 2)
    found = ranks.save([{"a.b": torch.ones(2)}] * 2)
    assert found[0] == "TT" and found[3].planner_data == {"a.b": ("a.b",)}
    held = [{"a": torch.ones(2), "b": torch.ones(3)}] * 2
    ranks.save(held)
    assert ranks.save(held)[1] == "FF"
    ranks.options = {"owner": "lowest_rank"}
    found = ranks.save(held)
    assert found[:2] == ("FF", "TT") and [len(plan.items) for plan in found[4]] == [2, 0]
    assert ranks.save(held)[:2] == ("FF", "FF")


# ---- planners that are not alike, hosts that keep plans ----

class Unlike(Ranks):
    """Ranks whose planners differ: a class and options of its own for each."""

    def __init__(self, *planners):
        super().__init__(len(planners))
        self.planners = planners

    def planner(self, rank, state):
        kind, options = self.planners[rank]
        _cache.final_plans = self.caches[rank]
        made = kind(**{"enable_plan_caching": True} | options)
        made.set_up_planner(state, None, rank == 0)
        return made


class TorchRanks:
    """The same with torch's planners, whose class-level dicts are swapped as if each rank were a process."""

    NAMES = ("_cached_save_plan", "_cached_final_save_plan", "_cached_all_plans", "_cached_global_plan", "_cached_metadata")

    def __init__(self, monkeypatch, *kinds):
        self.monkeypatch, self.kinds = monkeypatch, kinds
        self.caches = [{name: {} for name in self.NAMES} for _ in kinds]

    def enter(self, rank):
        for name, cache in self.caches[rank].items():
            self.monkeypatch.setattr(SavePlanner, name, cache)

    def save(self, states):
        made, sent, final = [], [], []
        for rank, (kind, held) in enumerate(zip(self.kinds, states, strict=True)):
            self.enter(rank)
            made.append(kind(enable_plan_caching=True))
            made[-1].set_up_planner(held, None, rank == 0)
            sent.append(made[-1].create_local_plan())
        self.enter(0)
        replies, metadata = made[0].create_global_plan(sent)
        self.names = list(metadata.state_dict_metadata)
        for rank, reply in enumerate(replies):
            self.enter(rank)
            final.append(made[rank].finish_plan(reply))
        return "".join("FT"[plan.usable] for plan in sent), [len(plan.items) for plan in final]


def test_classes_and_options_of_planners_may_differ_between_ranks(monkeypatch):
    states = [state(), state(only=torch.ones(3))]
    theirs = TorchRanks(monkeypatch, original.DefaultSavePlanner, type("Other", (original.DefaultSavePlanner,), {}))
    shapes = [theirs.save(states) for _ in range(4)]
    assert [sent for sent, _ in shapes] == ["TT", "FF", "FF", "FF"]
    other = type("Other", (ours.DefaultSavePlanner,), {})
    for second in ((other, {}), (ours.DefaultSavePlanner, {"owner": "balanced"}),
                   (ours.DefaultSavePlanner, {"dedup_save_to_lowest_rank": True})):
        _cache.forget()
        ranks = Unlike((ours.DefaultSavePlanner, {}), second)
        found = [ranks.save(states) for _ in range(4)]
        assert [(made[0], [len(plan.items) for plan in made[4]]) for made in found] == shapes
        changed = [state(), state(only=torch.ones(2))]
        assert ranks.save(changed)[0] == "FT" and ranks.save(changed)[0] == ranks.save(states)[0] == "FF"


@pytest.mark.parametrize("coordinator", [original.DefaultSavePlanner, ours.DefaultSavePlanner])
def test_a_coordinator_that_keeps_no_plans_gets_whole_ones(coordinator):
    states = [state(), state(only=torch.ones(3))]
    ranks = Unlike((coordinator, {"enable_plan_caching": False}), (ours.DefaultSavePlanner, {}))
    for _ in range(3):
        found = ranks.save(states)
        assert found[:2] == ("TT", "TT") and sorted(item.index.fqn for plan in found[4] for item in plan.items) == [
            "a", "b", "only", "step"]


def test_a_coordinator_that_keeps_plans_no_more_says_so_and_the_next_save_works(monkeypatch):
    states = [state(), state(only=torch.ones(3))]
    careless = functools.partial(original.DefaultSavePlanner, flatten_state_dict=False)
    theirs = TorchRanks(monkeypatch, lambda **_: careless(), careless)
    assert theirs.save(states)[0] == "TT" and "only" in theirs.names
    assert theirs.save(states)[0] == "TF" and "only" not in theirs.names, "torch's metadata lacks what the rank writes"
    ranks = Unlike(*[(ours.DefaultSavePlanner, {})] * 2)
    ranks.save(states)
    ranks.planners = ((ours.DefaultSavePlanner, {"enable_plan_caching": False}), ranks.planners[1])
    with pytest.raises(ours.StalePlanError, match="rank 1 .*without plan caching"):
        ranks.save(states)
    assert ranks.save(states)[:2] == ("TT", "TT")


def test_torchs_coordinator_may_answer_that_nothing_has_changed(monkeypatch):
    """Our planner on a rank of torch's: it sends whole plans, and takes torch's replies."""
    theirs, held = TorchRanks(monkeypatch, original.DefaultSavePlanner, ours.DefaultSavePlanner), [state(), state()]
    first = theirs.save(held)
    assert theirs.save(held) == ("FT", first[1]) and theirs.save(held) == ("FT", first[1])


def finishing(kind):
    """(first finished plan, what an unusable one gives on the same planner, and on a new one of the class)."""
    planner, again = kind(enable_plan_caching=True), kind(enable_plan_caching=True)
    plan = SavePlan([tensor("a", 4)])
    return planner.finish_plan(plan), planner.finish_plan(SavePlan([], usable=False)), again.finish_plan(SavePlan([], usable=False))


def finishing_its_own(kind):
    """A planner that takes its local plan for the final one, and is then told that nothing has changed."""
    planner = kind(enable_plan_caching=True)
    planner.set_up_planner(state(), None, True)
    plan = planner.finish_plan(planner.create_local_plan())
    return plan, planner.finish_plan(SavePlan([], usable=False))


def test_an_unusable_plan_means_the_one_that_was_finished_last(monkeypatch):
    TorchRanks(monkeypatch, original.DefaultSavePlanner).enter(0)
    assert finishing_its_own(original.DefaultSavePlanner) == finishing_its_own(ours.DefaultSavePlanner)
    assert finishing(original.DefaultSavePlanner) == finishing(ours.DefaultSavePlanner)
    fresh = type("DefaultSavePlanner", (ours.DefaultSavePlanner,), {})
    with pytest.raises(ours.StalePlanError):
        fresh(enable_plan_caching=True).finish_plan(SavePlan([], usable=False))


def test_a_described_state_never_gets_the_plan_of_another(monkeypatch):
    held, other = [{"a": torch.ones(4)}], [{"b": torch.ones(4)}]
    ranks = Ranks(1)
    for states in (held, other):
        ranks.save(states)
    planner = ranks.planner(0, held[0])
    planner.create_local_plan()
    assert [item.index.fqn for item in planner.finish_plan(SavePlan([], usable=False)).items] == ["a"]
    TorchRanks(monkeypatch, original.DefaultSavePlanner).enter(0)
    theirs = original.DefaultSavePlanner(enable_plan_caching=True)
    theirs.finish_plan(SavePlan([tensor("b", 4)]))
    theirs.set_up_planner(held[0], None, True)
    theirs.create_local_plan()
    assert [item.index.fqn for item in theirs.finish_plan(SavePlan([], usable=False)).items] == ["b"], "torch has one per class"


def test_after_a_save_that_was_not_finished_a_rank_sends_its_plan_again(monkeypatch):
    def sent(kind, save):
        held = [state()]
        save(held)
        found = []
        for _ in range(2):
            planner = kind(enable_plan_caching=True)
            planner.set_up_planner(held[0], None, True)
            found.append(planner.create_local_plan().usable)
        return found

    ranks = Ranks(1)
    TorchRanks(monkeypatch, original.DefaultSavePlanner).enter(0)
    theirs = TorchRanks(monkeypatch, original.DefaultSavePlanner)
    assert sent(original.DefaultSavePlanner, theirs.save) == [False, False], "torch takes it for answered"
    assert sent(ours.DefaultSavePlanner, ranks.save) == [False, True]


COMPARED = [(lambda: shard("s", [0], [2], [4]), lambda: shard("s", [0], [2], [4]), True),
            (lambda: shard("s", [0], [2], [4]), lambda: shard("s", [0], [2], [4], hint=1), False),
            (lambda: shard("s", [0], [2], [4]), lambda: shard("s", [2], [2], [4]), False),
            (lambda: shard("s", [0], [2], [4]), lambda: shard("s", [0], [2], [6]), False),
            (lambda: shard("s", [0], [2], [4]), lambda: shard("s", [0], [3], [4]), False),
            (lambda: tensor("s", 4), lambda: shard("s", [0], [4], [4]), False)]


@pytest.mark.parametrize(("one", "other", "equal"), COMPARED)
def test_plans_are_compared_as_torch_does(one, other, equal):
    a, b = SavePlan([one()]), SavePlan([other()])
    assert ours._compare_save_plans(a, b) is _compare_save_plans(a, b) is equal
    assert not ours._compare_save_plans(a, dataclasses.replace(b, usable=False))
    assert not ours._compare_save_plans(a, SavePlan([]))


def test_plans_of_two_dtypes_are_not_equal():
    a, b = SavePlan([tensor("s", 4)]), SavePlan([tensor("s", 4, dtype=torch.int32)])
    assert _compare_save_plans(a, b), "torch takes them for equal"
    assert not ours._compare_save_plans(a, b)


def test_usable_plans_are_found_and_merged():
    usable, known = SavePlan([tensor("a", 1)]), SavePlan([], usable=False)
    assert ours._contains_usable_plan([known, usable]) and not ours._contains_usable_plan([known, known])
    cached = plans([tensor("x", 1)], [tensor("y", 1)])
    assert ours._merge_delta_local_plans(cached, [known, usable]) == [cached[0], usable]
