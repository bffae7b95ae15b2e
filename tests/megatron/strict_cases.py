# SPDX-License-Identifier: Apache-2.0
"""Mismatches of request and checkpoint, and requests that contradict each other, on two ranks without megatron-core."""
import io
import logging
from unittest import mock

import shardwright
import torch
from own_vocabulary import failure_of, made, same_on_all
from shardwright.torch import megatron as ours
from shardwright.torch.megatron import consistency

CASES = []


def case(function):
    CASES.append(function)
    return function


# ---- vocabulary ----

RAISING, RETURNING, LOGGING = ("raise_unexpected", "raise_all"), ("return_unexpected", "return_all"), ("log_unexpected", "log_all")
VALUES = ("assume_ok_unexpected", "ignore_all", *RAISING, *RETURNING, *LOGGING)


def tensor(rank, key, fill=0.0):
    return ours.ShardedTensor.from_rank_offsets(key, torch.full((2, 3), fill), (0, rank, 2))


def thing(rank, key, data=None):
    return ours.ShardedObject(key, data, (2,), (rank,))


def stored(folder, rank):
    path = made(folder / "c")
    names = [f"Ten{c}" for c in "ABCEFGHIJK"]
    tree = {name: tensor(rank, name, 1.0) for name in names} | {name: thing(rank, name, rank) for name in ("ObjA", "ObjB")}
    ours.save(tree | {"iteration": 3}, path)
    return path


def asked(rank, without=(), also=()):
    tree = {key: tensor(rank, key) for key in ("TenA", "TenB", "TenC", "TenE", "TenF", "TenG", "TenH", "TenI", "TenJ", "TenK", *also)
            if key.startswith("Ten")}
    tree |= {key: thing(rank, key) for key in ("ObjA", "ObjB", *also) if key.startswith("Obj")}
    return {key: leaf for key, leaf in tree.items() if key not in without}


class Heard:
    """What the package warns of."""

    def __enter__(self):
        self.stream = io.StringIO()
        self.handler = logging.StreamHandler(self.stream)
        logging.getLogger("shardwright.torch.megatron").addHandler(self.handler)
        return self

    def __exit__(self, *_):
        logging.getLogger("shardwright.torch.megatron").removeHandler(self.handler)

    @property
    def text(self):
        return self.stream.getvalue()


# ---- cases ----

@case
def every_value_takes_what_fits(folder, rank):
    path = stored(folder, rank)
    for strict in VALUES:
        for validate in (True, False):
            with Heard() as heard:
                found = ours.load(asked(rank), path, strict=strict, validate_access_integrity=validate)
            tree = found[0] if strict in RETURNING else found
            assert found[1:] == (set(), set()) if strict in RETURNING else isinstance(found, dict)
            assert torch.equal(tree["TenA"], torch.ones(2, 3)) and tree["ObjB"] == rank and tree["iteration"] == 3
            assert heard.text == "", heard.text


@case
def unexpected_keys_are_exact_on_every_rank(folder, rank):
    """Of each rank its own; what is left is loaded."""
    path = stored(folder, rank)
    own = ("TenUnexpected", "ObjUnexpected") if rank == 1 else ("TenUnexpected",)
    for strict in VALUES:
        for validate in (True, False):
            with Heard() as heard:
                if validate:
                    request = asked(rank, also=("TenUnexpected", "ObjUnexpected"))
                    wanted = {"TenUnexpected", "ObjUnexpected"}
                else:
                    request, wanted = asked(rank, also=own), set(own)

                def call(request=request, strict=strict, validate=validate):
                    return ours.load(request, path, strict=strict, validate_access_integrity=validate)

                if strict in RAISING or strict == "assume_ok_unexpected":
                    error = failure_of(call)
                    assert "Unexpected" in str(error) and isinstance(error, KeyError), error
                    assert isinstance(error, ours.CheckpointingException), error
                    continue
                found = call()
            assert found[1:] == (set(), wanted) if strict in RETURNING else "TenUnexpected" not in found
            assert all(key in heard.text for key in wanted) == (strict in LOGGING), (strict, heard.text)
            tree = found[0] if strict in RETURNING else found
            assert torch.equal(tree["TenA"], torch.ones(2, 3)) and tree["ObjB"] == rank


@case
def missing_keys_are_exact_and_the_same_on_all_ranks(folder, rank):
    """What one rank requests is not missing; a shard of an object that none requests is, by its unique key."""
    path = stored(folder, rank)
    cases = [(("TenA", "ObjB"), {"TenA", "ObjB"}),
             (("TenA", "ObjB") if rank == 0 else ("TenA",), {"TenA", "ObjB/shard_0_2"})]
    for without, missing in cases:
        for strict in VALUES:
            for validate in (True, False):
                incomplete = validate and missing != {"TenA", "ObjB"}
                with Heard() as heard:

                    def call(without=without, strict=strict, validate=validate):
                        return ours.load(asked(rank, without), path, strict=strict, validate_access_integrity=validate)

                    if strict == "raise_all" or incomplete:
                        error = same_on_all(failure_of(call))
                        assert "ObjB" in str(error) or "ShardedObject are missing" in str(error), error
                        continue
                    found = call()
                assert found[1:] == (missing if strict == "return_all" else set(), set()) if strict in RETURNING else True
                assert all(key in heard.text for key in missing) == (strict == "log_all"), (strict, heard.text)


@case
def one_rank_with_unexpected_keys_is_an_error_of_both(folder, rank):
    """The original raises on one, and the other waits."""
    path = stored(folder, rank)
    for strict in (*RAISING, "assume_ok_unexpected"):
        request = asked(rank, also=("TenX",) if rank == 1 else ())
        error = same_on_all(failure_of(lambda: ours.load(request, path, strict=strict, validate_access_integrity=False)))
        assert "TenX" in str(error), error
    assert ours.load(asked(rank), path)["iteration"] == 3


@case
def an_absent_tensor_is_named_with_at_most_five_similar_ones(folder, rank):
    path = stored(folder, rank)
    error = failure_of(lambda: ours.load(asked(rank, also=("TenX",)), path))
    assert isinstance(error, KeyError) and isinstance(error, shardwright.errors.NotFoundError)
    nearest = error.details["nearest"].split(", ")
    assert 0 < len(nearest) <= 5 and all(key.startswith("Ten") for key in nearest), nearest
    error = failure_of(lambda: ours.load(asked(rank, also=("ObjX",)), path))
    assert isinstance(error, KeyError) and "ObjX/shard_0_2" in str(same_on_all(error)), error
    assert str(error).count("Obj") <= 12 and str(error).count("Ten") <= 5, error


@case
def requests_are_proved_on_all_ranks_with_one_error(folder, rank):
    path = stored(folder, rank)
    twice = asked(rank)
    twice["TenA"] = tensor(0, "TenA")
    hole = asked(rank)
    hole["TenA"].replica_id = rank
    for request, words in ((twice, "main replicas on the ranks"), (hole, "no main replica")):
        for strict in VALUES:
            error = same_on_all(failure_of(lambda: ours.load(request, path, strict=strict)))
            assert words in str(error) and "TenA" in str(error) and isinstance(error, ours.CheckpointingException), error
        error = same_on_all(failure_of(lambda: ours.save(request, path)))
        assert words in str(error), error
    assert ours.load(hole, path, validate_access_integrity=False)["iteration"] == 3
    irregular = asked(rank)
    irregular["TenA"] = ours.ShardedTensor("TenA", torch.zeros(2, 3), torch.float32, (2, 3), (4, 3), (rank, 0), None)
    assert "overlap" in str(same_on_all(failure_of(lambda: ours.load(irregular, path))))


@case
def ranks_with_another_common_state_are_told(folder, rank):
    path = made(folder / "c")
    tree = {"w": tensor(rank, "w", 1.0), "rank": rank, "same": [1, {"a": torch.ones(2)}]}
    with Heard() as heard:
        ours.save(tree, path)
    assert ("('rank',)" in heard.text and "('same'" not in heard.text) == (rank == 1), heard.text
    with Heard() as heard:
        ours.save(tree, path, preprocess_common_before_consistancy_check=lambda common: {k: v for k, v in common.items() if k != "rank"})
    assert "Mismatched" not in heard.text, heard.text
    assert ours.load({}, path)["rank"] == 0


@case
def what_was_proved_before_travels_no_more_until_it_changes(folder, rank):
    """Descriptions of all ranks go to all when one of them has changed, on whichever rank that is."""
    path = made(folder / "c")
    tree = {"w": tensor(rank, "w", 1.0), "o": thing(rank, "o", rank), "step": 1}
    true, calls = consistency.described_on_all, []
    with mock.patch.object(consistency, "described_on_all", lambda *a: (calls.append(1), true(*a))[1]):
        for step in range(3):
            ours.save(tree | {"step": step}, path)
        assert len(calls) == 1
        if rank == 1:
            tree["extra"] = ours.ShardedTensor.from_rank_offsets("extra", torch.ones(2))
        ours.save(tree, path)
        assert len(calls) == 2
        tree["w"].replica_id = rank
        for _ in range(2):
            assert "no main replica" in str(same_on_all(failure_of(lambda: ours.save(tree, path))))
        assert len(calls) == 4
        tree["w"].replica_id = 0
        ours.save(tree, path)
        assert len(calls) == 4 and ours.load({}, path)["step"] == 1, "this was proved before"
        # Each rank alone describes what it has described before, but never together.
        tree["w"] = tensor(1 - rank, "w", 1.0)
        ours.save(tree, path)
        assert len(calls) == 5
        tree["w"] = tensor(0, "w", 1.0)
        assert "main replicas on the ranks" in str(same_on_all(failure_of(lambda: ours.save(tree, path))))
