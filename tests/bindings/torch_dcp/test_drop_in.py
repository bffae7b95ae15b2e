# SPDX-License-Identifier: Apache-2.0
"""Our planners inside torch's own save and load with torch's own files, and the extensions that torch's documentation
shows users: renaming, casting, balancing, extra data, meta tensors."""
import dataclasses
import io
import pickle
import threading
from dataclasses import replace
from itertools import zip_longest

import pytest
import torch
import torch.distributed.checkpoint as dcp
import torch.distributed.checkpoint.default_planner as original
from torch.distributed.checkpoint.planner import SavePlan, WriteItemType
from torch.distributed.checkpoint.storage import WriteResult
from worlds import placed

import shardwright
import shardwright.torch.dcp.planner as ours


def state(start=0.0):
    return {"model": {"w": torch.arange(12.0).reshape(3, 4) + start, "t": (torch.arange(6.0).reshape(2, 3) + start).t()},
            "optimizer": [{"m": torch.full((2,), start)}, {"step": int(start), "note": "x"}], "epoch": int(start)}


def emptied():
    return {"model": {"w": torch.zeros(3, 4), "t": torch.zeros(3, 2)},
            "optimizer": [{"m": torch.zeros(2)}, {"step": -1, "note": ""}], "epoch": -1}


def same(a, b):
    left, right = ours.flatten_state_dict(a)[0], ours.flatten_state_dict(b)[0]
    assert list(left) == list(right)
    assert all(torch.equal(v, right[k]) if isinstance(v, torch.Tensor) else v == right[k] for k, v in left.items())


SAVERS = {"torch": original.DefaultSavePlanner, "ours": ours.DefaultSavePlanner}
LOADERS = {"torch": original.DefaultLoadPlanner, "ours": ours.DefaultLoadPlanner}


@pytest.mark.parametrize("saver", SAVERS)
@pytest.mark.parametrize("loader", LOADERS)
def test_what_one_saves_the_other_loads(saver, loader, tmp_path):
    found = dcp.save(state(5.0), checkpoint_id=tmp_path / "c", planner=SAVERS[saver](), no_dist=True)
    assert type(found).__name__ == "Metadata" and "model.w" in found.state_dict_metadata
    target = emptied()
    dcp.load(target, checkpoint_id=tmp_path / "c", planner=LOADERS[loader](), no_dist=True)
    same(target, state(5.0))


def test_both_write_the_same_index(tmp_path):
    found = []
    for name, saver in SAVERS.items():
        dcp.save(state(), checkpoint_id=tmp_path / name, planner=saver(), no_dist=True)
        with open(tmp_path / name / ".metadata", "rb") as file:
            found.append(pickle.load(file))
    for metadata in found:
        metadata.storage_meta = None
    assert found[0] == found[1]
    assert type(found[1].state_dict_metadata) is dict


@pytest.mark.parametrize("threads", [1, 3])
def test_writers_with_threads_ask_from_several_of_them(threads, tmp_path):
    class Noting(ours.DefaultSavePlanner):
        seen = set()

        def resolve_data(self, write_item):
            self.seen.add(threading.get_ident())
            return super().resolve_data(write_item)

    big = {f"w{i}": torch.full((300,), float(i)) for i in range(40)} | {"o": {"a": (1, 2)}}
    writer = dcp.FileSystemWriter(tmp_path / "c", thread_count=threads)
    dcp.save(big, storage_writer=writer, planner=Noting(), no_dist=True)
    target = {f"w{i}": torch.zeros(300) for i in range(40)} | {"o": {"a": None}}
    dcp.load(target, checkpoint_id=tmp_path / "c", planner=ours.DefaultLoadPlanner(), no_dist=True)
    same(target, big)


def test_an_async_save_resolves_in_a_foreign_thread(tmp_path):
    import torch.distributed as dist
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        future = dcp.async_save(state(7.0), checkpoint_id=tmp_path / "c", planner=ours.DefaultSavePlanner())
        future.result(60)
    finally:
        dist.destroy_process_group()
    target = emptied()
    dcp.load(target, checkpoint_id=tmp_path / "c", planner=ours.DefaultLoadPlanner(), no_dist=True)
    same(target, state(7.0))


def test_planners_are_pickled_with_their_state():
    planner = ours.DefaultSavePlanner()
    planner.set_up_planner(state(1.0), None, True)
    again = pickle.loads(pickle.dumps(planner))
    assert again.create_local_plan() == planner.create_local_plan()
    loader = pickle.loads(pickle.dumps(ours.DefaultLoadPlanner(allow_partial_load=True)))
    assert loader.allow_partial_load


def test_nothing_of_torchs_own_cache_is_touched(tmp_path):
    from torch.distributed.checkpoint.planner import SavePlanner
    caches = [SavePlanner._cached_save_plan, SavePlanner._cached_final_save_plan, SavePlanner._cached_all_plans,
              SavePlanner._cached_global_plan, SavePlanner._cached_metadata]
    for cache in caches:
        cache["DefaultSavePlanner"] = "poison"
    try:
        for number in range(2):
            dcp.save(state(float(number)), checkpoint_id=tmp_path / str(number), no_dist=True,
                     planner=ours.DefaultSavePlanner(enable_plan_caching=True))
        assert [dict(cache) for cache in caches] == [{"DefaultSavePlanner": "poison"}] * 5
    finally:
        for cache in caches:
            cache.clear()


KINDS = [(ours.DefaultSavePlanner, original.DefaultSavePlanner), (ours.DefaultLoadPlanner, original.DefaultLoadPlanner),
         (ours._EmptyStateDictLoadPlanner, original._EmptyStateDictLoadPlanner)]


@pytest.mark.parametrize(("mine", "theirs"), KINDS)
def test_ours_are_planners_of_torch_by_type_and_inherit_no_method(mine, theirs):
    assert isinstance(mine(), theirs) and issubclass(mine, theirs)
    for name, member in vars(theirs).items():
        if callable(member):
            assert getattr(mine, name) is not member, name
    assert vars(theirs()).keys() <= vars(mine()).keys() | {"_pending_local_plan"}


# ---- what torch's documentation shows ----

class RenameOnSave(ours.DefaultSavePlanner):
    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        super().set_up_planner({"foo_" + k: v for k, v in state_dict.items()}, storage_meta, is_coordinator)


class RenameOnLoad(ours.DefaultLoadPlanner):
    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        self.original_state_dict = state_dict
        state_dict = {"foo_" + k: v for k, v in state_dict.items()}
        if self.flatten_sharded_tensors:
            state_dict = ours._flatten_sharded_tensors(state_dict)
        if self.flatten_state_dict:
            state_dict, self.mappings = ours.flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.metadata = metadata
        self.is_coordinator = is_coordinator

    def load_bytes(self, read_item, value):
        self.original_state_dict[read_item.dest_index.fqn[4:]] = torch.load(value, weights_only=False)


def test_a_planner_that_renames(tmp_path):
    dcp.save({"w": torch.arange(4.0), "step": 5}, checkpoint_id=tmp_path / "c", planner=RenameOnSave(), no_dist=True)
    metadata = dcp.FileSystemReader(tmp_path / "c").read_metadata()
    assert sorted(metadata.state_dict_metadata) == ["foo_step", "foo_w"]
    target = {"w": torch.zeros(4), "step": 0}
    dcp.load(target, checkpoint_id=tmp_path / "c", planner=RenameOnLoad(), no_dist=True)
    assert torch.equal(target["w"], torch.arange(4.0)) and target["step"] == 5


class HalfOnSave(ours.DefaultSavePlanner):
    def create_local_plan(self):
        plan = super().create_local_plan()
        for item in plan.items:
            if item.tensor_data is not None:
                item.tensor_data.properties.dtype = torch.float16
        return plan

    def resolve_data(self, write_item):
        found = super().resolve_data(write_item)
        return found if write_item.type == WriteItemType.BYTE_IO else found.to(torch.float16)


def test_a_planner_that_casts(tmp_path):
    dcp.save({"w": torch.arange(4.0), "o": 1}, checkpoint_id=tmp_path / "c", planner=HalfOnSave(), no_dist=True)
    found = dcp.FileSystemReader(tmp_path / "c").read_metadata().state_dict_metadata
    assert found["w"].properties.dtype == torch.float16
    loader, target = ours.DefaultLoadPlanner(), {"w": torch.zeros(4), "o": 0}
    dcp.load(target, checkpoint_id=tmp_path / "c", planner=loader, no_dist=True)
    assert torch.equal(target["w"], torch.arange(4.0)) and loader.casts == {"w": (torch.float16, torch.float32)}


class Balancing(ours.DefaultSavePlanner):
    def create_global_plan(self, all_plans):
        dealt = zip_longest(*[iter(all_plans[0].items)] * len(all_plans))
        per_rank = [[item for item in items if item is not None] for items in zip(*dealt, strict=True)]
        return super().create_global_plan([replace(plan, items=items)
                                           for plan, items in zip(all_plans, per_rank, strict=True)])


def test_a_planner_that_deals_the_items_itself():
    planner = Balancing()
    planner.set_up_planner({f"w{i}": torch.ones(i + 1) for i in range(5)}, None, True)
    plan = planner.create_local_plan()
    final, metadata = planner.create_global_plan([plan, plan])
    assert [[item.index.fqn for item in p.items] for p in final] == [["w0", "w2", "w4"], ["w1", "w3"]]
    assert sorted(metadata.state_dict_metadata) == [f"w{i}" for i in range(5)]


class ExtraData(ours.DefaultSavePlanner):
    def create_local_plan(self):
        return replace(super().create_local_plan(), planner_data="per-rank-data")

    def create_global_plan(self, all_plans):
        global_plan, metadata = super().create_global_plan(all_plans)
        return global_plan, replace(metadata, planner_data=[p.planner_data for p in global_plan])


def test_a_planner_that_adds_data_of_its_own(tmp_path):
    found = dcp.save({"w": torch.ones(2)}, checkpoint_id=tmp_path / "c", planner=ExtraData(), no_dist=True)
    assert found.planner_data == ["per-rank-data"]

    class TorchExtraData(original.DefaultSavePlanner):
        create_local_plan = lambda self: replace(original.DefaultSavePlanner.create_local_plan(self), planner_data="own")  # noqa: E731

    planner = TorchExtraData()
    planner.set_up_planner({"w": torch.ones(2)}, None, True)
    with pytest.raises(TypeError):  # torch's example needs flatten_state_dict=False in torch itself
        planner.create_global_plan([planner.create_local_plan()])


class Materialise(ours.DefaultLoadPlanner):
    def resolve_tensor(self, read_item):
        return torch.empty_like(super().resolve_tensor(read_item), device="cpu")

    def commit_tensor(self, read_item, tensor):
        self.original_state_dict[read_item.dest_index.fqn] = tensor


def test_planners_that_give_meta_tensors_memory(tmp_path):
    dcp.save({"w": torch.arange(4.0)}, checkpoint_id=tmp_path / "c", planner=ours.DefaultSavePlanner(), no_dist=True)
    for planner in (Materialise(), ours.DefaultLoadPlanner()):
        target = {"w": torch.empty(4, device="meta")}
        dcp.load(target, checkpoint_id=tmp_path / "c", planner=planner, no_dist=True)
        assert torch.equal(target["w"], torch.arange(4.0))


def test_a_method_of_one_planner_object_may_be_replaced():
    planner, asked = ours.DefaultSavePlanner(), []
    planner._dedup_save_plans = lambda plans: asked.append(len(plans)) or ours.dedup_tensors(plans)
    planner.set_up_planner({"w": torch.ones(2), "o": 1}, None, True)
    plan = planner.create_local_plan()
    final, _ = planner.create_global_plan([plan, plan])
    assert asked == [2] and [len(p.items) for p in final] == [2, 0]


def test_lookup_and_transform_may_be_overridden(tmp_path):
    class Doubling(ours.DefaultSavePlanner):
        def transform_object(self, write_item, object):
            return super().transform_object(write_item, object * 2)

    class Halving(ours.DefaultLoadPlanner):
        def transform_tensor(self, read_item, tensor):
            self.scratch = torch.empty_like(tensor)
            return self.scratch

        def commit_tensor(self, read_item, tensor):
            self.lookup_tensor(read_item.dest_index).copy_(self.scratch / 2)

    dcp.save({"w": torch.arange(4.0), "n": 3}, checkpoint_id=tmp_path / "c", planner=Doubling(), no_dist=True)
    target = {"w": torch.zeros(4), "n": 0}
    dcp.load(target, checkpoint_id=tmp_path / "c", planner=Halving(), no_dist=True)
    assert torch.equal(target["w"], torch.arange(4.0)) and target["n"] == 6


# ---- writers and faults of the host ----

class MemoryWriter(dcp.StorageWriter):
    """Keeps what it is given, with storage data of its own; fails where it is told to."""

    def __init__(self, failing=""):
        self.failing, self.data, self.calls = failing, {}, []

    def _step(self, name):
        self.calls.append(name)
        if name == self.failing:
            raise ValueError(f"no {name} today")

    def reset(self, checkpoint_id=None):
        self.calls.append("reset")

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        self._step("set_up_storage_writer")

    def prepare_local_plan(self, plan):
        self._step("prepare_local_plan")
        return dataclasses.replace(plan, storage_data="local")

    def prepare_global_plan(self, plans):
        self._step("prepare_global_plan")
        assert all(plan.storage_data == "local" for plan in plans)
        return [dataclasses.replace(plan, storage_data=f"global {i}") for i, plan in enumerate(plans)]

    def write_data(self, plan, planner):
        self._step("write_data")
        results = []
        for item in plan.items:
            data = planner.resolve_data(item)
            self.data[item.index] = data.getvalue() if isinstance(data, io.BytesIO) else data.clone()
            results.append(WriteResult(item.index, 1, {"place": plan.storage_data}))
        future = torch.futures.Future()
        future.set_result(results)
        return future

    def finish(self, metadata, results):
        self._step("finish")
        self.results = results

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True


def test_a_writer_with_storage_data_of_its_own_gets_it_back():
    writer = MemoryWriter()
    dcp.save({"w": torch.ones(2), "o": 1}, storage_writer=writer, planner=ours.DefaultSavePlanner(), no_dist=True)
    assert [r.storage_data for r in writer.results[0]] == [{"place": "global 0"}] * 2


@pytest.mark.parametrize("step", ["set_up_storage_writer", "prepare_local_plan", "prepare_global_plan", "write_data", "finish"])
def test_a_failing_writer_fails_the_save_as_with_torchs_planner(step):
    found = []
    for saver in SAVERS.values():
        with pytest.raises(BaseException, match=f"no {step} today") as caught:
            dcp.save({"w": torch.ones(2)}, storage_writer=MemoryWriter(step), planner=saver(), no_dist=True)
        found.append((type(caught.value), sorted(caught.value.failures)))
    assert found[0] == found[1]


STEPS = ["set_up_planner", "create_local_plan", "create_global_plan", "finish_plan", "resolve_data"]


@pytest.mark.parametrize("step", STEPS)
def test_a_failing_hook_fails_the_save(step, tmp_path):
    def fail(self, *arguments, **keywords):
        raise KeyError(f"no {step} today")

    planner = type("Failing", (ours.DefaultSavePlanner,), {step: fail})()
    with pytest.raises(dcp.api.CheckpointException, match=f"no {step} today") as caught:
        dcp.save({"w": torch.ones(2)}, checkpoint_id=tmp_path / "c", planner=planner, no_dist=True)
    assert list(caught.value.failures) == [0] and isinstance(caught.value.failures[0][0], KeyError)


def test_lookups_fail_with_the_words_of_torch():
    from torch.distributed.checkpoint.metadata import MetadataIndex
    planner, state_dict = ours.DefaultSavePlanner(), {"w": torch.ones(4), "o": 1, "p": placed((8,), [((2,), (2,)), ((6,), (2,))])}
    planner.set_up_planner(state_dict, None, True)
    for index, text in ((MetadataIndex("none"), "Could not find FQN: 'none'"),
                        (MetadataIndex("w", [1]), "is not a ShardedTensor, can't find by offset"),
                        (MetadataIndex("o", [0]), "is not a ShardedTensor, can't find by offset"),
                        (MetadataIndex("p"), "with multiple checkpointable shards and no offset"),
                        (MetadataIndex("p", [3]), "Could not find checkpointable tensor shard at")):
        with pytest.raises(ValueError, match=text) as caught:
            planner.lookup_object(index)
        assert isinstance(caught.value, shardwright.InvalidArgumentError)
    for hint in (None, 0, 1, 9):
        assert planner.lookup_object(MetadataIndex("p", [6], hint)).shape == (2,)


def test_usable_is_kept_on_the_way_through_the_planner():
    plan = SavePlan([], usable=False)
    assert ours.DefaultSavePlanner().finish_plan(plan) is plan
