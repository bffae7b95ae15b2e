# SPDX-License-Identifier: Apache-2.0
"""HyperParallel's documented global step on values of the kind that its ranks exchange (frozen dataclasses): ranks that
hold an index, items of one rank first, then the least loaded holder (the lowest of equals); then properties compared,
items numbered, chunks listed.
"""
from collections import defaultdict
from dataclasses import dataclass, replace
from math import prod

from driver.contender import Base

BYTES = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True)
class Index:
    fqn: str
    offset: tuple
    index: int | None = None


@dataclass(frozen=True)
class Chunk:
    offsets: tuple
    sizes: tuple


@dataclass(frozen=True)
class Properties:
    dtype: str
    requires_grad: bool = False


@dataclass(frozen=True)
class Item:
    index: Index
    tensor: dict  # chunk, properties, size

    def storage_bytes(self):
        return prod(self.tensor["chunk"].sizes) * BYTES[self.tensor["properties"].dtype]


@dataclass
class Plan:
    items: list


def without_replicas(plans):
    holders, items = defaultdict(set), {}
    kept = [{item.index for item in plan.items} for plan in plans]
    for number, plan in enumerate(plans):
        for item in plan.items:
            holders[item.index].add(number)
            items[item.index] = item
    load = [0] * len(plans)
    for index, ranks in holders.items():
        if len(ranks) == 1:
            load[next(iter(ranks))] += items[index].storage_bytes() or 1
    for index, ranks in holders.items():
        if len(ranks) == 1:
            continue
        owner = min(sorted(ranks), key=load.__getitem__)
        load[owner] += items[index].storage_bytes() or 1
        for other in ranks - {owner}:
            kept[other].discard(index)
    return [replace(plan, items=[item for item in plan.items if item.index in mine])
            for plan, mine in zip(plans, kept, strict=True)]


def numbered(plans):
    metadata, made = {}, []
    for plan in plans:
        items = []
        for item in plan.items:
            tensor = item.tensor
            described = (tensor["properties"], tensor["size"])
            known, chunks = metadata.setdefault(item.index.fqn, (described, []))
            if known != described:
                raise ValueError(f"ranks describe '{item.index.fqn}' differently")
            items.append(replace(item, index=replace(item.index, index=len(chunks))))
            chunks.append(tensor["chunk"])
        made.append(replace(plan, items=items))
    return made, metadata


class Contender(Base):
    versions = {"algorithm": "StandardSavePlanner 0.1"}

    def setup(self):
        ranks, items = self.params["ranks"], self.params["items"]
        self.plans = [Plan([self.item(rank, number, ranks) for number in range(items)]) for rank in range(ranks)]

    def item(self, rank, number, ranks):
        cut = number % 2 == 0
        offset, size = (8 * rank if cut else 0, 0), (8 * ranks if cut else 8, 8)
        return Item(Index(f"model.layers.{number}.attention.weight", offset),
                    {"chunk": Chunk(offset, (8, 8)), "properties": Properties("float32"), "size": size})

    def prepare(self):
        self.result = self.metadata = None  # the last result is not dropped in the timing

    def run(self):
        self.result, self.metadata = numbered(without_replicas(self.plans))

    def check(self):
        ranks, items = self.params["ranks"], self.params["items"]
        chunks = sum(len(listed) for _, listed in self.metadata.values())
        return chunks == sum(len(plan.items) for plan in self.result) == (items + 1) // 2 * ranks + items // 2
