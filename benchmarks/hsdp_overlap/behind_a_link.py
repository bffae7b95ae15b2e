# SPDX-License-Identifier: Apache-2.0
"""What the contenders share: a second model behind the link, which takes the same steps as the first one."""
import time


class BehindALink:
    """Before a contender of hsdp_step."""

    def slow_down(self, model):
        """From now on the model's bytes come over the link."""
        raise NotImplementedError

    def setup(self):
        super().setup()
        self.slow = self.shard(self.make_model())
        self.slow_optimizer = self.torch.optim.SGD(self.slow.parameters(), lr=1e-3, momentum=0.9)
        self.slow_down(self.slow)

    def settle(self):
        super().settle()
        self.fast_s = None

    def prepare(self):
        super().prepare()
        self.dist.barrier()
        start = time.perf_counter()
        self.train(self.inputs)
        self.fast_s = time.perf_counter() - start

    def run(self):
        start = time.perf_counter()
        self.slow(self.inputs).square().mean().backward()
        self.slow_optimizer.step()
        self.slow_optimizer.zero_grad()
        return {"equal_bits": self.equal_bits, "step_without_link_s": self.fast_s,
                "exposed_s": time.perf_counter() - start - self.fast_s}
