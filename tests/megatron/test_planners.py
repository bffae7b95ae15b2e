# SPDX-License-Identifier: Apache-2.0
"""The planners alone: options, local and global plans, shapes that must or need not fit, quantised targets."""
import argparse
import contextlib
import dataclasses
import io
import pathlib
import pickle
import types

import pytest
import shardwright
import torch
import torch.distributed.checkpoint as dcp
from shardwright.torch import megatron as ours
from shardwright.torch.megatron import _reuse
from shardwright.torch.dcp.planner import _cache
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.planner import WriteItemType


def planned(planner, leaves):
    """The local plan of a planner for descriptors by key."""
    planner.set_up_planner(ours.mcore_to_pyt_state_dict(leaves), None, True)
    return planner.create_local_plan()


def save_planner(**options):
    return ours.MCoreSavePlanner(flatten_state_dict=False, **options)


def part(kinds, key, data, *offsets, **changed):
    return kinds.ShardedTensor.from_rank_offsets(key, data, *offsets, **changed)


def described(plan):
    return [(item.index.fqn, item.index.offset, item.type,
             item.tensor_data and (item.tensor_data.chunk, item.tensor_data.size, item.tensor_data.properties.dtype))
            for item in plan.items]


def test_options_that_exclude_each_other(original):
    for planner in (ours.MCoreSavePlanner, original.strategies.MCoreSavePlanner):
        with pytest.raises(AssertionError, match="flatten_state_dict=True"):
            planner()
        with pytest.raises(AssertionError, match="dedup_replicated_tensors=True"):
            planner(dedup_replicated_tensors=True, flatten_state_dict=False)
        assert planner(flatten_state_dict=False).can_run_decentralized_global_plan
        central = planner(can_run_decentralized_global_plan=False)
        assert central.flatten_state_dict and not central.can_run_decentralized_global_plan
        with pytest.raises(AssertionError, match="flatten_state_dict=True"):
            central.create_decentralized_global_plan(None)


def world(kinds, rank):
    """What one of two ranks saves, main replicas only."""
    leaves = {"split": [part(kinds, "split", torch.arange(6.0).reshape(2, 3) + rank, (1, rank, 2))],
              "layers": [part(kinds, "layers", torch.ones(4), (0, 2 * rank + n, 4), prepend_axis_num=1) for n in range(2)],
              f"own/shard_{rank}_2": [kinds.ShardedObject("own", {"rank": rank}, (2,), (rank,))]}
    if rank == 0:
        leaves["whole"] = [part(kinds, "whole", torch.ones(5, dtype=torch.int32), replica_id=(0, 0))]
    return leaves


def test_the_local_plan_lists_everything_on_every_rank(kinds):
    plan = planned(save_planner(), world(kinds, 1))
    assert [(fqn, kind) for fqn, _, kind, _ in described(plan)] == [
        ("split", WriteItemType.SHARD), ("layers", WriteItemType.SHARD), ("layers", WriteItemType.SHARD),
        ("own/shard_1_2", WriteItemType.BYTE_IO)]
    assert plan.planner_data == {} and [item.index.index for item in plan.items] == [None, 0, 1, None]


def test_plans_and_metadata_are_those_of_the_original(original, one_rank):
    """Entries without prepended axes: there the original needs no process group of its own."""
    leaves = [{key: value for key, value in world(original.mapping, rank).items() if key != "layers"} for rank in range(2)]
    found, expected = [], []
    for rank in range(2):
        found.append(planned(save_planner(), leaves[rank]))
        theirs = original.strategies.MCoreSavePlanner(flatten_state_dict=False)
        theirs.set_up_planner(original.strategies.mcore_to_pyt_state_dict(leaves[rank]), None, True)
        expected.append(theirs.create_local_plan())
    assert [list(plan.items) for plan in found] == [plan.items for plan in expected]
    planner, theirs = save_planner(), original.strategies.MCoreSavePlanner(flatten_state_dict=False)
    for one in (planner, theirs):
        one.set_up_planner({}, None, True)
    plans, metadata = planner.create_global_plan(found)
    their_plans, their_metadata = theirs.create_global_plan(expected)
    assert [list(plan.items) for plan in plans] == [plan.items for plan in their_plans]
    assert dict(metadata.state_dict_metadata) == their_metadata.state_dict_metadata
    assert metadata.planner_data == their_metadata.planner_data is None
    assert planner.create_decentralized_global_plan(found[0]) is found[0]


def test_planner_data_excludes_a_plan_without_the_coordinator(kinds):
    planner = save_planner()
    plan = dataclasses.replace(planned(planner, world(kinds, 0)), planner_data={"a": ("a",)})
    with pytest.raises(AssertionError, match="Planner data should be empty"):
        planner.create_decentralized_global_plan(plan)


def test_streams_are_not_serialised_again(kinds):
    planner = save_planner()
    plan = planned(planner, world(kinds, 0))
    stream = planner.resolve_data(next(item for item in plan.items if item.type is WriteItemType.BYTE_IO))
    stream.seek(0)
    assert torch.load(stream) == [{"rank": 0}]


def test_dtensors_are_refused(one_rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor
    planner = save_planner()
    planner.set_up_planner({"d": distribute_tensor(torch.ones(4), init_device_mesh("cpu", (1,)), [Shard(0)])}, None, True)
    with pytest.raises(AssertionError, match="d is a DTensor"):
        planner.create_local_plan()


# ---- loading ----

@pytest.fixture
def saved(tmp_path):
    """A checkpoint of one tensor (2, 32), 0 to 63, in two halves, and one object."""
    leaves = {"t": [part(ours, "t", torch.arange(64.0).reshape(2, 32)[:, 16 * n:16 * n + 16].contiguous(), (1, n, 2))
                    for n in range(2)], "o/shard_0_1": [ours.ShardedObject("o", [1, 2], (1,), (0,))]}
    dcp.save(ours.mcore_to_pyt_state_dict(leaves), checkpoint_id=tmp_path / "c", planner=save_planner(), no_dist=True)
    return tmp_path / "c"


def load(path, leaf, **options):
    """The tensor of one request."""
    request = ours.mcore_to_pyt_state_dict({leaf.key: [leaf]}, is_loading=True)
    dcp.load(request, checkpoint_id=path, planner=ours.MCoreLoadPlanner(**options), no_dist=True)
    return ours._unwrap_pyt_sharded_tensor(request[leaf.key])[0]


# requested columns -> columns of rank 0, columns of rank 1
FLEXIBLE = [(36, list(range(18)), [*range(18, 32), *[None] * 4]), (28, list(range(14)), list(range(14, 28))),
            (32, list(range(16)), list(range(16, 32))), (80, [*range(32), *[None] * 8], [None] * 40)]


@pytest.mark.parametrize(("columns", "first", "second"), FLEXIBLE)
def test_flexible_requests_are_cropped_and_padded(columns, first, second, saved, kinds):
    for rank, expected in enumerate((first, second)):
        leaf = part(kinds, "t", torch.full((2, columns // 2), -1.0), (1, rank, 2), allow_shape_mismatch=True)
        found = load(saved, leaf, allow_shape_mismatch_sharded_tensors={"t": leaf})
        assert found.tolist() == [[0.0 if c is None else c + 32.0 * row for c in expected] for row in range(2)]


def test_rigid_requests_must_fit(saved, kinds):
    leaf = part(kinds, "t", torch.zeros(2, 18), (1, 0, 2))
    with pytest.raises(BaseException, match="Global shape mismatch for loaded .* and expected .* tensor for key t") as caught:
        load(saved, leaf, shapes_validation_sharded_tensors=[leaf])
    (cause, _), = caught.value.failures.values()
    assert isinstance(cause, ours.CheckpointingException)
    leaf = part(kinds, "t", torch.zeros(2, 32))
    assert torch.equal(load(saved, leaf, shapes_validation_sharded_tensors=[leaf]), torch.arange(64.0).reshape(2, 32))


@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_a_planner_that_plans_otherwise_checks_the_shapes_by_itself(whose, saved, original):
    base = ours.MCoreLoadPlanner if whose == "ours" else original.strategies.MCoreLoadPlanner

    class Otherwise(base):
        def create_local_plan(self):
            self._validate_global_shapes(self.metadata, self.shapes_validation_sharded_tensors)
            return super(base, self).create_local_plan()

    for shape, fits in (((2, 32), True), ((2, 36), False)):
        leaf = part(ours, "t", torch.zeros(shape))
        planner = Otherwise(shapes_validation_sharded_tensors=[leaf])
        planner.set_up_planner(ours.mcore_to_pyt_state_dict({"t": [leaf]}, is_loading=True),
                               dcp.FileSystemReader(saved).read_metadata(), True)
        with contextlib.nullcontext() if fits else pytest.raises(Exception, match="Global shape mismatch for loaded"):
            assert len(planner.create_local_plan().items) == 2


def test_the_metadata_of_the_caller_stays_as_it_is(saved):
    reader = dcp.FileSystemReader(saved)
    metadata = reader.read_metadata()
    before = pickle.dumps(metadata)
    leaf = part(ours, "t", torch.zeros(2, 18), (1, 0, 2), allow_shape_mismatch=True)
    planner = ours.MCoreLoadPlanner(allow_shape_mismatch_sharded_tensors={"t": leaf})
    planner.set_up_planner(ours.mcore_to_pyt_state_dict({"t": [leaf]}, is_loading=True), metadata, True)
    assert len(planner.create_local_plan().items) == 2 and pickle.dumps(metadata) == before


def metadata_of(count):
    plan = planned(save_planner(), {f"layer.{n}.w": [part(ours, f"layer.{n}.w", torch.ones(1))] for n in range(count)})
    planner = save_planner()
    planner.set_up_planner({}, None, True)
    return planner.create_global_plan([plan])[1]


@pytest.mark.parametrize("flexible", [False, True])
def test_absent_keys_are_named_with_five_similar_ones(flexible, original):
    leaf = part(ours, "layer.7.v", torch.ones(1), allow_shape_mismatch=flexible)
    options = {"allow_shape_mismatch_sharded_tensors": {leaf.key: leaf}} if flexible else {"shapes_validation_sharded_tensors": [leaf]}
    planner = ours.MCoreLoadPlanner(**options)
    planner.set_up_planner(ours.mcore_to_pyt_state_dict({leaf.key: [leaf]}, is_loading=True), metadata_of(300), True)
    with pytest.raises(KeyError, match=r"layer.7.v from model not in state dict; the nearest of 300 keys") as caught:
        planner.create_local_plan()
    assert "layer.7.w" in str(caught.value) and len(str(caught.value)) < 200
    theirs = original.strategies.MCoreLoadPlanner(**options)
    theirs.set_up_planner({}, metadata_of(300), True)
    with pytest.raises(KeyError) as caught:
        theirs.create_local_plan()
    assert flexible or len(str(caught.value)) > 4000  # all keys


def test_objects_are_no_tensors(saved):
    leaf = part(ours, "o/shard_0_1", torch.ones(1))
    with pytest.raises(BaseException, match="is stored as an object and requested as a tensor"):
        load(saved, leaf, shapes_validation_sharded_tensors=[leaf])


def test_holes_of_a_checkpoint_are_found_before_reading(saved):
    metadata = dcp.FileSystemReader(saved).read_metadata()
    stored = metadata.state_dict_metadata["t"]
    assert isinstance(stored, TensorStorageMetadata)
    del stored.chunks[1]
    for flexible in (False, True):
        leaf = part(ours, "t", torch.zeros(2, 32), allow_shape_mismatch=flexible)
        options = {"allow_shape_mismatch_sharded_tensors": {"t": leaf}} if flexible else {}
        planner = ours.MCoreLoadPlanner(**options)
        planner.set_up_planner(ours.mcore_to_pyt_state_dict({"t": [leaf]}, is_loading=True), metadata, True)
        with pytest.raises(ValueError, match="32 of (the )?64 elements of t"):
            planner.create_local_plan()


class Float8Tensor(torch.Tensor):
    """A quantised tensor as Transformer Engine has them: `_data` and `make_like`."""

    @classmethod
    def make_like(cls, tensor, *, data):
        return cls.of(data)

    @classmethod
    def of(cls, data):
        made = data.as_subclass(cls)
        made._data = data
        return made


def test_quantised_parts_are_staged_in_any_order(saved):
    leaf = part(ours, "t", torch.zeros(2, 32))
    planner = ours.MCoreLoadPlanner()
    planner.set_up_planner(ours.mcore_to_pyt_state_dict({"t": [leaf]}, is_loading=True),
                           dcp.FileSystemReader(saved).read_metadata(), True)
    items = list(planner.create_local_plan().items)
    planner.lookup_tensor = lambda index: Float8Tensor.of(leaf.data)
    targets = []
    for item in items:
        narrowed = leaf.data[:, item.dest_offsets[1]:item.dest_offsets[1] + item.lengths[1]]
        planner.transform_tensor = lambda _, tensor, narrowed=narrowed: Float8Tensor.of(narrowed)
        targets.append(planner.resolve_tensor(item))
    assert all(target.is_contiguous() for target in targets) and (leaf.data == 0).all()
    for number in (1, 0):
        targets[number].fill_(number + 1)
        planner.commit_tensor(items[number], targets[number])
    assert leaf.data[0].tolist() == [1.0] * 16 + [2.0] * 16


def load_object(folder, value):
    """What a save and a load make of one object."""
    cell = ours.ShardedObject("o", value, (1,), (0,))
    dcp.save(ours.mcore_to_pyt_state_dict({cell.unique_key: [cell]}), checkpoint_id=folder / "c", planner=save_planner(), no_dist=True)
    request = {cell.unique_key: io.BytesIO()}
    dcp.load(request, checkpoint_id=folder / "c", planner=ours.MCoreLoadPlanner(), no_dist=True)
    return request[cell.unique_key][0]


class Stranger:
    """A class that no list allows."""


def test_objects_of_allowed_classes_come_back(tmp_path):
    value = {"config": types.SimpleNamespace(a=1), "arguments": argparse.Namespace(b=[2]), "path": pathlib.Path("/x")}
    assert load_object(tmp_path, value) == value
    with pytest.raises(BaseException, match="trust_pickles"):
        load_object(tmp_path, Stranger())


def cached_step(leaves):
    """What a rank sends and what it writes, when it is the only one and plans are cached."""
    planner = save_planner(enable_plan_caching=True)
    sent = planned(planner, leaves)
    (answer,), metadata = planner.create_global_plan([sent])
    return sent.usable, described(planner.finish_plan(answer)), set(metadata.state_dict_metadata)


def saved_by_two(leaves, caches):
    """Which ranks sent plans, names in the metadata, and names that either rank writes; ranks have a cache each."""
    planners = [save_planner(enable_plan_caching=True) for _ in leaves]
    sent, written = [], []
    for rank, planner in enumerate(planners):
        _cache.final_plans = caches[rank]
        sent.append(pickle.loads(pickle.dumps(planned(planner, leaves[rank]))))
    usable = [plan.usable for plan in sent]
    answers, metadata = planners[0].create_global_plan(sent)
    for rank, answer in enumerate(answers):
        _cache.final_plans = caches[rank]
        written.append({item[0] for item in described(planners[rank].finish_plan(pickle.loads(pickle.dumps(answer))))})
    return usable, set(metadata.state_dict_metadata), written


def test_what_one_rank_holds_is_not_lost_when_another_rank_changes(monkeypatch):
    _cache.forget()
    monkeypatch.setattr(_cache, "final_plans", None)
    caches = [_cache._Recent(), _cache._Recent()]
    leaves = [world(ours, rank) for rank in range(2)]
    everything = {"split", "layers", "whole", "own/shard_0_2", "own/shard_1_2"}
    assert saved_by_two(leaves, caches)[:2] == ([True, True], everything)
    assert saved_by_two(leaves, caches)[:2] == ([False, False], everything)
    leaves[1]["more"] = [part(ours, "more", torch.ones(2))]
    usable, names, written = saved_by_two(leaves, caches)
    assert usable == [False, True] and names == everything | {"more"}
    assert written == [set(leaves[0]), set(leaves[1])]


def test_a_key_that_is_new_is_not_lost_by_caching():
    leaves = {"a": [part(ours, "a", torch.ones(4))], "o/shard_0_1": [ours.ShardedObject("o", 1, (1,), (0,))]}
    first, again = cached_step(leaves), cached_step(leaves)
    assert (first[0], again[0]) == (True, False) and first[1:] == again[1:]
    more = leaves | {"b": [part(ours, "b", torch.ones(2))]}
    usable, items, names = cached_step(more)
    assert usable and names == set(more) and [item[0] for item in items] == ["a", "o/shard_0_1", "b"]
    changed = leaves | {"a": [part(ours, "a", torch.ones(4, dtype=torch.int8))]}
    assert cached_step(changed)[1][0][3][2] is torch.int8


def test_a_rank_that_plans_alone_takes_no_digest_for_understood():
    _cache.forget()
    leaves = {"a": [part(ours, "a", torch.ones(4))], "o/shard_0_1": [ours.ShardedObject("o", 1, (1,), (0,))]}
    cached_step(leaves)
    planner = save_planner(enable_plan_caching=True)
    sent = dataclasses.replace(planned(planner, leaves), storage_data="writer")
    own = planner.create_decentralized_global_plan(sent)
    assert not sent.usable and own.usable and own.storage_data == "writer" and own.planner_data == {}
    assert described(planner.finish_plan(own)) == described(planned(save_planner(), leaves))
    assert planned(save_planner(enable_plan_caching=True), leaves).usable, "nobody answered, so the plan is sent whole"
    assert not planned(save_planner(enable_plan_caching=True), {"b": leaves["a"]} | leaves).planner_data


def test_the_coordinator_stores_whole_plans_where_digests_came():
    _cache.forget()
    leaves = {"a": [part(ours, "a", torch.ones(4))]}
    cached_step(leaves)
    planner = save_planner(enable_plan_caching=True)
    plans = [planned(planner, leaves)]
    assert not plans[0].usable
    planner.create_global_plan(plans)
    assert type(plans[0].items) is list and plans[0].usable and described(plans[0]) == described(planned(save_planner(), leaves))


def reused(plan, leaves):
    """What a planner that made no plan of its own does with the one of an earlier save."""
    planner = save_planner()
    planner.set_up_planner(ours.mcore_to_pyt_state_dict(leaves), None, True)
    return described(planner.finish_plan(plan))


def halves(key, *numbers, **changed):
    return {key: [part(ours, key, torch.ones(4, **changed), (0, number, 2)) for number in numbers]}


def test_a_plan_serves_states_that_are_described_alike_in_any_order():
    both = halves("a", 0, 1) | halves("b", 0)
    planner = save_planner()
    plan = planner.finish_plan(planned(planner, both))
    for leaves in (both, halves("b", 0) | halves("a", 1, 0)):
        assert reused(plan, leaves) == described(plan)
        assert reused(pickle.loads(pickle.dumps(plan)), leaves) == described(plan)
    assert len(list(plan.items)) == 3 and reused(plan, both) == described(plan), "looked at and still the same plan"


@pytest.mark.parametrize(("leaves", "words"), [
    (halves("a", 0), "a is described otherwise; "), (halves("a", 0, 1, dtype=torch.int8), "a is described otherwise; "),
    (halves("b", 0, 1), "a is gone, b is new; "), (halves("a", 0, 1) | halves("b", 0), "b is new; "), ({}, "a is gone; "),
    (halves("a", 0, 1) | {key: leaf for n in range(7) for key, leaf in halves(f"k{n}", 0).items()}, "k4 is new ...; ")])
def test_a_state_that_changed_is_refused_with_what_to_do(leaves, words):
    planner = save_planner()
    plan = planner.finish_plan(planned(planner, halves("a", 0, 1)))
    for again in (plan, pickle.loads(pickle.dumps(plan)), dataclasses.replace(plan, items=list(plan.items))):
        with pytest.raises(ours.CheckpointingException, match=words) as caught:
            reused(again, leaves)
        assert "let all ranks plan anew" in str(caught.value) and isinstance(caught.value, shardwright.errors.FailedPreconditionError)



class Telling(ours.MCoreSavePlanner):
    """Only looks on."""

    def create_local_plan(self):
        return super().create_local_plan()


class FewerItems(ours.MCoreSavePlanner):
    """Leaves out what comes after the first item."""

    def create_local_plan(self):
        plan = super().create_local_plan()
        return dataclasses.replace(plan, items=plan.items[:1])


class OwnWay(ours.MCoreSavePlanner):
    """Describes states without the base class."""

    def create_local_plan(self):
        self.plan = dataclasses.replace(dcp.default_planner.create_default_local_save_plan(self.state_dict, True), planner_data={})
        return self.plan


def on_one_object(**options):
    planner = ours.MCoreSavePlanner(**options)
    base = planner.create_local_plan
    planner.create_local_plan = lambda: dataclasses.replace(base(), storage_data="changed")
    return planner


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("kind", [Telling, FewerItems, OwnWay, on_one_object])
def test_overrides_describe_states_in_their_own_way_and_are_asked_about_kept_plans(kind, caching):
    def planner_for(leaves):
        planner = kind(flatten_state_dict=False, enable_plan_caching=caching)
        planner.set_up_planner(ours.mcore_to_pyt_state_dict(leaves), None, True)
        return planner

    _cache.forget()
    _reuse._descriptions.clear()
    leaves = halves("a", 0) | halves("b", 0)
    first = planner_for(leaves)
    plan = first.finish_plan(first.create_decentralized_global_plan(first.create_local_plan()))
    assert [name for name, *_ in described(plan)] == (["a"] if kind is FewerItems else ["a", "b"])
    for again in (plan, pickle.loads(pickle.dumps(plan))):
        assert described(planner_for(leaves).finish_plan(again)) == described(plan)
        changed = planner_for(halves("a", 0, dtype=torch.int8) | halves("b", 0))
        if kind is OwnWay:
            assert described(changed.finish_plan(again)) == described(plan)
        else:
            with pytest.raises(ours.CheckpointingException, match="a is described otherwise"):
                changed.finish_plan(again)
    _reuse._descriptions.clear()
    assert described(planner_for(leaves).finish_plan(plan)) == described(plan), "a process that has not planned before"


def test_a_share_of_items_that_columns_cannot_hold_is_known_again():
    leaves = halves("a", 0) | halves("replica", 0)
    planner = save_planner()
    own = planned(planner, leaves)
    odd = dataclasses.replace(own, items=[dataclasses.replace(item, tensor_data=dataclasses.replace(
        item.tensor_data, properties=dataclasses.replace(item.tensor_data.properties, dtype=torch.qint8))) for item in own.items])
    share = dataclasses.replace(odd, items=odd.items[:1])
    assert _reuse._digest(odd) is None
    _reuse.remember(share, odd)
    _reuse.check(share, [odd])
    with pytest.raises(ours.CheckpointingException, match="replica is"):
        _reuse.check(dataclasses.replace(share, items=[]), [odd])


def test_the_coordinator_keeps_no_plans_of_ranks():
    planner = save_planner(enable_plan_caching=True)
    planner.create_global_plan([planned(planner, halves("a", 0, 1))])
    assert planner._received == []
