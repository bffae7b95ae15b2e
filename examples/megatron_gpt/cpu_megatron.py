# SPDX-License-Identifier: Apache-2.0
"""megatron-core on processors without a GPU: what it asks of CUDA is answered by the CPU, before any of it is imported.

Only for examples and tests: the numbers are those of the CPU, and nothing here is needed where a GPU is.
"""
import contextlib
import copy
import functools
import queue
import threading
import types
import warnings

import torch


class _NoRandomStates:
    """In the place of the tracker of CUDA's random states; nothing here draws numbers inside of a fork."""

    def fork(self, *_):
        return contextlib.nullcontext()

    def add(self, *_):
        pass

    def get_states(self):
        return {}

    def set_states(self, states):
        pass


def _on_cpu(make):
    @functools.wraps(make)
    def made(*arguments, **options):
        if str(options.get("device", "")).startswith("cuda"):
            options["device"] = "cpu"
        return make(*arguments, **options)
    return made


def _over_parts_of_sequences(make):
    """The norms of torch, which megatron-core takes only where each rank has whole sequences: their weights are marked as those
    of its own norms are, by which it adds up the gradients of the ranks."""
    @functools.wraps(make)
    def made(cls, config, *arguments, **options):
        whole = copy.copy(config)
        whole.sequence_parallel = False
        norm = make(cls, whole, *arguments, **options)
        for weight in norm.parameters():
            weight.sequence_parallel = config.sequence_parallel
        return norm
    return made


def prepare():
    """Call it before megatron is imported."""
    torch.cuda.current_device = lambda: torch.device("cpu")
    torch.cuda.synchronize = lambda *_: None
    torch.Tensor.cuda = lambda self, *_, **__: self
    for name in ("tensor", "zeros", "empty", "ones", "full"):
        setattr(torch, name, _on_cpu(getattr(torch, name)))
    kind = torch.Tensor.type
    torch.Tensor.type = lambda self, *arguments: (
        kind(self, *arguments) if arguments else kind(self).replace("torch.", "torch.cuda.", 1))
    warnings.filterwarnings("ignore")
    from megatron.core.tensor_parallel import random
    random._CUDA_RNG_STATE_TRACKER, random._CUDA_RNG_STATE_TRACKER_INITIALIZED = _NoRandomStates(), True
    from megatron.core.transformer.moe import moe_utils
    moe_utils.te_general_gemm = None
    from megatron.core.transformer import torch_norm
    torch_norm.WrappedTorchNorm.__new__ = staticmethod(_over_parts_of_sequences(torch_norm.WrappedTorchNorm.__new__))
    from megatron.core.dist_checkpointing.strategies import async_utils, filesystem_async
    for module in (async_utils, filesystem_async):
        module.mp = WithoutFork(module.mp)
    filesystem_async._results_queue = queue.Queue()  # of threads; else a process for each rank that saves
    _mend_steps()


class WithoutFork:
    """multiprocessing for megatron-core's own writer: it forks, and the fork of a process with threads may wait for ever on a
    lock that one of them held. Its writers are threads here."""

    def __init__(self, multiprocessing):
        self.multiprocessing = multiprocessing

    def __getattr__(self, name):
        return getattr(self.multiprocessing, name)

    def get_context(self, kind):
        if kind != "fork":
            return self.multiprocessing.get_context(kind)
        return types.SimpleNamespace(Queue=queue.Queue, JoinableQueue=queue.Queue, Process=threading.Thread)


def _mend_steps():
    """torch's Adam counts steps in a tensor of each parameter, which the optimizer of megatron-core does not expect: it stays
    where it is when a state is taken and set, and no two parameters share one."""
    from megatron.core.optimizer import distrib_optimizer
    kind = distrib_optimizer.DistributedOptimizer
    take, put, load = kind._get_main_param_and_optimizer_states, kind._set_main_param_and_optimizer_states, kind.load_state_dict

    def without_step(self, *arguments):
        return {name: value for name, value in take(self, *arguments).items() if name != "step"}

    def set_without_step(self, parameter, tensors):
        group, order = self.model_param_group_index_map[parameter]
        own = self.optimizer.state[self.optimizer.param_groups[group]["params"][order]].get("step")
        put(self, parameter, tensors if own is None else {**tensors, "step": own})

    def load_own_steps(self, *arguments, **options):
        load(self, *arguments, **options)
        for state in self.optimizer.state.values():
            if torch.is_tensor(state.get("step")):
                state["step"] = state["step"].clone()

    kind._get_main_param_and_optimizer_states = without_step
    kind._set_main_param_and_optimizer_states = set_without_step
    kind.load_state_dict = load_own_steps
