# SPDX-License-Identifier: Apache-2.0
"""What the contenders share: the model behind the link, and the same model in each process by itself."""
import time


class BehindALink:
    """Before a contender of hsdp_step."""

    def slow_down(self, model):
        """From now on the model's bytes come over the link."""
        raise NotImplementedError

    def make_model(self):
        model = super().make_model()
        if "sleeps" in self.params:
            for block in model:
                block.append(sleeping(self.torch, **self.params["sleeps"]))
        return model

    def setup(self):
        super().setup()
        self.slow_down(self.model)
        self.alone = self.make_model()
        self.alone_optimizer = self.torch.optim.SGD(self.alone.parameters(), lr=1e-3, momentum=0.9)

    def prepare(self):
        """Both processes compute alone at once, as they do in the step."""
        super().prepare()
        self.dist.barrier()
        start = time.perf_counter()
        self.alone(self.inputs).square().mean().backward()
        self.alone_optimizer.step()
        self.alone_optimizer.zero_grad()
        self.compute_s = time.perf_counter() - start

    def run(self):
        start = time.perf_counter()
        made = super().run()
        return made | {"compute_s": self.compute_s, "exposed_s": time.perf_counter() - start - self.compute_s}


def sleeping(torch, forward, backward):
    """A module that hands its input on after so many seconds, and the gradient likewise."""

    class Sleep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            time.sleep(forward)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            time.sleep(backward)
            return grad.clone()

    class Sleeping(torch.nn.Module):
        def forward(self, x):
            return Sleep.apply(x)

    return Sleeping()
