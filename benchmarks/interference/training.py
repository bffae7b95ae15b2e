# SPDX-License-Identifier: Apache-2.0
"""What the contenders share: a loop of steps, and a save beside it."""
import os
import statistics
import time

from driver.background_saves import BackgroundSave

STEP_SECONDS = 0.1
ALONE_STEPS, LEAST_STEPS = 10, 8
SIDE = 512  # of the matrices


class Training(BackgroundSave):
    def fence(self):
        """Returns when the tensors may change."""

    def ended(self):
        """Whether the save is durable."""
        raise NotImplementedError

    def setup(self):
        super().setup()
        self.compute_threads = max(1, len(os.sched_getaffinity(0)) // self.world)
        self.left = self.torch.rand(SIDE, SIDE)
        self.right = self.torch.rand(SIDE, SIDE)
        self.products = 0

    def measure(self):
        """How much work a step is: the same on all ranks. Not during setup, when all contenders are busy."""
        self.products = 1
        self.compute()
        start = time.perf_counter()
        for _ in range(20):
            self.compute()
        mine = self.torch.tensor([max(1, round(STEP_SECONDS / ((time.perf_counter() - start) / 20)))])
        self.dist.broadcast(mine, 0)
        self.products = int(mine)

    def compute(self):
        for _ in range(self.products):
            self.torch.mm(self.left, self.right)

    def change(self):
        """What an optimizer does, on an element of each tensor: a save that still reads must not see it."""
        for tensor in self.locals_of(self.values).values():
            tensor[-1, -1] = -1

    def step(self):
        start = time.perf_counter()
        self.compute()
        return time.perf_counter() - start

    def prepare(self):
        self.torch.set_num_threads(self.compute_threads)
        super().prepare()
        self.dist.barrier()
        if not self.products:
            self.measure()
        self.alone_s = statistics.median([self.step() for _ in range(ALONE_STEPS)])

    def run(self):
        begin = last = time.perf_counter()
        self.begin()
        steps, save_s = [], 0.0
        while not save_s or len(steps) < LEAST_STEPS:
            self.compute()
            self.fence()
            self.change()
            now = time.perf_counter()
            steps.append(now - last)
            last = now
            if not save_s and self.ended():
                save_s = now - begin
        lost = sum(steps) - len(steps) * self.alone_s
        curve = {f"slow_{n + 1}": steps[n] / self.alone_s for n in range(LEAST_STEPS)}
        return {"s": max(lost, 1e-6), "save_s": save_s, "alone_s": self.alone_s} | curve
