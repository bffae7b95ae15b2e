# SPDX-License-Identifier: Apache-2.0
"""Quantised tensors, by a class that stands in for Transformer Engine's, on two ranks without megatron-core."""
import torch
from own_vocabulary import made
from shardwright.torch import megatron as ours

CASES = []
QUANTISATIONS = []


def case(function):
    CASES.append(function)
    return function


class Float8Tensor(torch.Tensor):
    """Bytes with a scale. Its memory is in `_data`; copying into it quantises, which a load must not do."""

    @staticmethod
    def __new__(cls, data, scale):
        made = torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=torch.float32)
        made._data, made._scale = data, scale
        return made

    def dequantize(self):
        return self._data.to(torch.float32) * self._scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return args[0]
        if func is torch.ops.aten.copy_.default:
            QUANTISATIONS.append(1)
            args[0]._data.copy_(args[1] / args[0]._scale)
            return args[0]
        raise NotImplementedError(f"{func} is not for a quantised tensor")


def quantised(rank, fill=None):
    data = torch.arange(6, dtype=torch.int8).reshape(2, 3) if fill is None else torch.full((2, 3), fill, dtype=torch.int8)
    return Float8Tensor(data, 0.5 + rank)


def shard(rank, data):
    return ours.ShardedTensor("w", data, torch.float32, (2, 3), (4, 3), (2 * rank, 0), (2, 1))


def expected(rank):
    return torch.arange(6.0).reshape(2, 3) * (0.5 + rank)


@case
def they_are_stored_and_loaded_in_high_precision(folder, rank):
    path = made(folder / "c")
    tree = {"w": shard(rank, quantised(rank))}
    ours.save(tree, path)
    assert type(tree["w"].data) is Float8Tensor
    assert ours.load_tensors_metadata(path)["w"].dtype == torch.float32
    request = {"w": shard(rank, quantised(rank, 7))}
    for strict in ("assume_ok_unexpected", "raise_all"):
        found = ours.load(request, path, strict=strict)["w"]
        assert type(found) is torch.Tensor and torch.equal(found, expected(rank))
    assert type(request["w"].data) is Float8Tensor and (request["w"].data._data == 7).all() and QUANTISATIONS == []


@case
def what_ranks_pass_on_is_high_precision_too(folder, rank):
    """Also where the wrapper is called by itself, with a quantised destination."""
    path = made(folder / "c")
    whole = torch.arange(6.0).reshape(2, 3)
    ours.save({"w": ours.ShardedTensor.from_rank_offsets("w", whole.clone(), replica_id=rank)}, path)
    for algorithm in ("broadcast", "gather_rounds", "gather_object"):
        wrapper = ours.FullyParallelLoadStrategyWrapper(ours.TorchDistLoadShardedStrategy(), exchange_algo=algorithm)
        request = {"w": ours.ShardedTensor("w", quantised(0, 7), torch.float32, (2, 3), (2, 3), (0, 0), (1, 1), rank)}
        found = ours.load(request, path, wrapper)["w"]
        assert torch.equal(found, whole) and QUANTISATIONS == []
        if rank == 1:
            data = quantised(0, 7)
            moved = ours.exchange_by_distribution({}, {**_id(request, data)}, wrapper_distribution(request), None, algorithm)
            assert torch.equal(next(iter(moved.values())).dequantize(), whole)
            QUANTISATIONS.clear()
        else:
            ours.exchange_by_distribution({("w", (0, 0), None): whole}, {}, wrapper_distribution(request), None, algorithm)


def _id(request, data):
    request["w"].data = data
    return {("w", (0, 0), None): request["w"]}


def wrapper_distribution(request):
    return ours.main_replica_distribution([[request["w"].without_data()]] * 2, ignore_groups=True)


@case
def the_named_function_replaces_them_with_their_values(folder, rank):
    tree = {"w": shard(rank, quantised(rank)), "plain": shard(rank, torch.ones(2, 3)), "other": 5}
    ours.force_all_tensors_to_non_fp8(tree)
    assert type(tree["w"].data) is torch.Tensor and torch.equal(tree["w"].data, expected(rank))
    assert torch.equal(tree["plain"].data, torch.ones(2, 3))
