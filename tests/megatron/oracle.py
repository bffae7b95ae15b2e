# SPDX-License-Identifier: Apache-2.0
"""Slow and plain renderings of the rules, to compare with."""


def owners(holders, sizes, num_ranks, cross=()):
    """The greedy distribution as it reads: look at all holders of each shard."""
    loads, found = [0] * num_ranks, {}
    for shard in sorted(holders, key=lambda s: (s in cross, len(holders[s]), -sizes[s], s)):
        rank = min(holders[shard], key=lambda r: (loads[r], r))
        loads[rank] += sizes[shard]
        found[shard] = rank
    return found


def counts(shape, boxes):
    """How often each element is covered, as a dict of index to count; boxes are (offset, sizes)."""
    import itertools
    found = dict.fromkeys(itertools.product(*map(range, shape)), 0)
    for offset, sizes in boxes:
        for index in itertools.product(*(range(o, o + s) for o, s in zip(offset, sizes))):
            found[index] = found.get(index, 0) + 1
    return found
