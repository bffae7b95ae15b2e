# SPDX-License-Identifier: Apache-2.0
"""Short words for torch's items and plans, and plans in short words."""
import torch
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties, TensorStorageMetadata
from torch.distributed.checkpoint.planner import SavePlan, TensorWriteData, WriteItem, WriteItemType


def chunk(offset, size):
    return ChunkStorageMetadata(torch.Size(offset), torch.Size(size))


def shard(name, offset, size, shape, dtype=torch.float32, hint=None):
    return WriteItem(MetadataIndex(name, offset, hint), WriteItemType.SHARD,
                     tensor_data=TensorWriteData(chunk(offset, size), TensorProperties(dtype), torch.Size(shape)))


def tensor(name, *shape, dtype=torch.float32):
    zeros = [0] * len(shape)
    return WriteItem(MetadataIndex(name, zeros), WriteItemType.TENSOR,
                     tensor_data=TensorWriteData(chunk(zeros, shape), TensorProperties(dtype), torch.Size(shape)))


def value(name):
    return WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO)


def stored(shape, *boxes, dtype=torch.float32):
    return TensorStorageMetadata(TensorProperties(dtype), torch.Size(shape), [chunk(*box) for box in boxes])


def names(plans):
    """The names that each plan holds, as "a b" per rank."""
    return [" ".join(item.index.fqn for item in plan.items) for plan in plans]


def plans(*ranks):
    return [SavePlan(list(rank)) for rank in ranks]


def reads(items):
    """(wanted box, chunk, offset in the chunk, offset in the box, lengths) of every item."""
    return [(i.dest_index.index, i.storage_index.index, tuple(i.storage_offsets), tuple(i.dest_offsets), tuple(i.lengths))
            for i in items]
