# SPDX-License-Identifier: Apache-2.0
"""The form in which Megatron up to 0.14 stored a flattened range, told by the place of the shard in its grid."""
from shardwright.layout import GridShard


def flat_entry(fragments, position, local_shape, flat):
    """(size of the entry, (offsets, sizes) of the chunk)."""
    prepended = len(fragments) - len(local_shape)
    places = [(axis, index, count) for axis, (index, count) in enumerate(zip(position, fragments))]
    return GridShard.at(local_shape, *places, prepended=prepended, flat_range=(flat.start, flat.stop)).flat_entry()
