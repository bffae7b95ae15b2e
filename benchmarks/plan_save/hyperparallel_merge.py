# SPDX-License-Identifier: Apache-2.0
"""HyperParallel's documented algorithm in Python: holders by (name, offset), single holders first, then least load; then
the numbering of what survived, over lists of objects as its ranks exchange them.
"""
from collections import namedtuple

from driver.contender import Base

Item = namedtuple("Item", "name offset sizes size bytes")


class Contender(Base):
    versions = {"algorithm": "remove_redundant_plans 0.1"}

    def setup(self):
        ranks, items = self.params["ranks"], self.params["items"]
        self.plans = [[Item(f"model.layers.{i}.attention.weight", (8 * r if i % 2 == 0 else 0, 0), (8, 8),
                            (8 * ranks if i % 2 == 0 else 8, 8), 256) for i in range(items)] for r in range(ranks)]

    def run(self):
        holders, weights = {}, {}
        for number, plan in enumerate(self.plans):
            for item in plan:
                key = (item.name, item.offset)
                holders.setdefault(key, set()).add(number)
                weights[key] = item.bytes or 1
        load = dict.fromkeys(range(len(self.plans)), 0)
        for key, ranks in holders.items():
            if len(ranks) == 1:
                load[next(iter(ranks))] += weights[key]
        keep = {}
        for key, ranks in holders.items():
            target = min(ranks, key=lambda rank: (load[rank], rank)) if len(ranks) > 1 else next(iter(ranks))
            if len(ranks) > 1:
                load[target] += weights[key]
            keep[key] = target
        self.result = [[item for item in plan if keep[(item.name, item.offset)] == number]
                       for number, plan in enumerate(self.plans)]
        self.chunks = {}
        for plan in self.result:
            for item in plan:
                self.chunks.setdefault(item.name, []).append((item.offset, item.sizes))

    def check(self):
        ranks, items = self.params["ranks"], self.params["items"]
        return sum(len(plan) for plan in self.result) == (items + 1) // 2 * ranks + items // 2
