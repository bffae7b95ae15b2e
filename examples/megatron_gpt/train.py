#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of a job that trains a small GPT of megatron-core on processors over Gloo; demo.py starts the ranks.

The batches are the same whatever the ranks are: step s takes eight sequences that a seed gives, and data-parallel ranks share
them out. `--save` and `--load` go through megatron.core.dist_checkpointing; with `--ours` those are this library's.
"""
import argparse
import contextlib
import os

import cpu_megatron
import torch
import torch.distributed as dist

cpu_megatron.prepare()

from megatron.core import dist_checkpointing, parallel_state
from megatron.core.dist_checkpointing.strategies import fully_parallel
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer import TransformerConfig

SEQUENCES, LENGTH, VOCABULARY = 8, 16, 128


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tp", type=int, default=1)
    parser.add_argument("--pp", type=int, default=1)
    parser.add_argument("--ep", type=int, default=1)
    parser.add_argument("--etp", type=int, help="tensor-parallel ranks of experts; else those of the rest")
    parser.add_argument("--experts", type=int, default=0)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--stages", help="layers of each pipeline stage, as in 3,1; else all have as many")
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--bucket-size", type=int, help="elements; else one bucket for each buffer")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--save-at", type=int, help="step; else the last one")
    parser.add_argument("--load")
    parser.add_argument("--save", action="append", default=[], help="KIND=FOLDER, KIND a sharding type of the optimizer")
    parser.add_argument("--ours", action="store_true")
    return parser.parse_args(words)


def stages(args):
    """What each pipeline stage has, as megatron-core wants it; None where all have as many layers."""
    if args.stages is None:
        return None
    layout = [["decoder"] * int(layers) for layers in args.stages.split(",")]
    layout[0].insert(0, "embedding")
    layout[-1].append("loss")
    return layout


def make_model(args):
    config = TransformerConfig(
        num_layers=args.layers, hidden_size=args.hidden, num_attention_heads=4, ffn_hidden_size=4 * args.hidden,
        tensor_model_parallel_size=args.tp, pipeline_model_parallel_size=args.pp, expert_model_parallel_size=args.ep,
        expert_tensor_parallel_size=args.etp, pipeline_model_parallel_layout=stages(args),
        sequence_parallel=args.tp > 1 and args.experts > 0,  # which megatron-core asks for
        num_moe_experts=args.experts or None, moe_token_dispatcher_type="allgather", moe_router_topk=2,
        use_cpu_initialization=True, gated_linear_unit=True, activation_func=torch.nn.functional.silu, add_bias_linear=False,
        hidden_dropout=0.0, attention_dropout=0.0, bias_activation_fusion=False, masked_softmax_fusion=False,
        gradient_accumulation_fusion=False, bias_dropout_fusion=False, bf16=args.bf16,
        params_dtype=torch.bfloat16 if args.bf16 else torch.float32,
        pipeline_dtype=torch.bfloat16 if args.bf16 else torch.float32)
    first, last = parallel_state.is_pipeline_first_stage(), parallel_state.is_pipeline_last_stage()
    model = GPTModel(config=config, transformer_layer_spec=get_gpt_layer_local_spec(num_experts=args.experts or None,
                     moe_grouped_gemm=False), vocab_size=VOCABULARY, max_sequence_length=LENGTH, pre_process=first,
                     post_process=last, share_embeddings_and_output_weights=False)
    if args.bf16:
        model = model.bfloat16()
    # Without overlap megatron-core makes one bucket of each buffer.
    ddp = DistributedDataParallelConfig(use_distributed_optimizer=True, overlap_grad_reduce=args.bucket_size is not None,
                                        bucket_size=args.bucket_size)
    return DistributedDataParallel(config, ddp, model)


def batch_of(step):
    numbers = torch.Generator().manual_seed(1000 + step)
    words = torch.randint(0, VOCABULARY, (SEQUENCES, LENGTH + 1), generator=numbers)
    words[:, 1:] = (words[:, :1] * 3 + 7 * torch.arange(1, LENGTH + 1) + words[:, 1:] % 5) % VOCABULARY  # something to learn
    rank, ranks = parallel_state.get_data_parallel_rank(), parallel_state.get_data_parallel_world_size()
    return words[rank * SEQUENCES // ranks:(rank + 1) * SEQUENCES // ranks]


def forward(words, model):
    part = next(words)
    mask = torch.triu(torch.ones(1, 1, LENGTH, LENGTH), 1).bool()
    positions = torch.arange(LENGTH).expand(len(part), LENGTH)
    losses = model(part[:, :-1].contiguous(), positions, mask, labels=part[:, 1:].contiguous())
    return losses, lambda found: (found.mean(), {"loss": found.mean().detach()})


def one_step(model, optimizer, step):
    """The mean loss of the batch, on the last stage of the pipeline."""
    model.zero_grad_buffer()
    optimizer.zero_grad()
    micro = parallel_state.get_pipeline_model_parallel_world_size()
    parts = iter(batch_of(step).chunk(micro))
    found = get_forward_backward_func()(
        forward_step_func=forward, data_iterator=parts, model=[model], num_microbatches=micro, seq_length=LENGTH,
        micro_batch_size=SEQUENCES // parallel_state.get_data_parallel_world_size() // micro, forward_only=False)
    optimizer.step()
    if not found:
        return None
    loss = torch.stack([each["loss"] for each in found]).float().mean()
    dist.all_reduce(loss, group=parallel_state.get_data_parallel_group())
    return loss.item() / parallel_state.get_data_parallel_world_size()


def described(model, optimizer, kind, is_loading=False):
    metadata = {"distrib_optim_sharding_type": kind, "singleton_local_shards": False, "chained_optim_avoid_prefix": True}
    state = {"model": model.module.sharded_state_dict(metadata=metadata)}
    state["optimizer"] = optimizer.sharded_state_dict(state, is_loading=is_loading, metadata=metadata)
    return state, metadata


def save(model, optimizer, kind, folder, step, args):
    state, metadata = described(model, optimizer, kind)
    state |= {"iteration": step, "args": argparse.Namespace(
        tensor_model_parallel_size=args.tp, pipeline_model_parallel_size=args.pp, expert_model_parallel_size=args.ep,
        num_layers=args.layers, hidden_size=args.hidden)}
    os.makedirs(folder, exist_ok=True)
    dist_checkpointing.save(state, folder, content_metadata=metadata)


def load(model, optimizer, folder):
    kind = dist_checkpointing.load_content_metadata(folder)["distrib_optim_sharding_type"]
    state, _ = described(model, optimizer, kind, is_loading=True)
    state |= {"iteration": 0}
    state = dist_checkpointing.load(state, folder)
    model.module.load_state_dict(state["model"])
    with torch.no_grad():  # buckets are copied into parameters, which in fp32 are the model's own
        optimizer.load_state_dict(state["optimizer"])
    return state["iteration"]


def installed():
    from shardwright.torch.megatron import install
    return install()


def is_first_of_stage():
    return parallel_state.get_data_parallel_rank() == 0 and parallel_state.get_tensor_model_parallel_rank() == 0


def main(words=None):
    args = arguments(words)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    parallel_state.initialize_model_parallel(args.tp, args.pp, expert_model_parallel_size=args.ep, expert_tensor_parallel_size=args.etp)
    torch.manual_seed(17)
    model = make_model(args)
    optimizer = get_megatron_optimizer(OptimizerConfig(
        optimizer="adam", lr=1e-2, weight_decay=0.01, clip_grad=1.0, bf16=args.bf16, use_distributed_optimizer=True,
        params_dtype=torch.bfloat16 if args.bf16 else torch.float32), [model])
    model.config.finalize_model_grads_func = finalize_model_grads
    model.config.grad_scale_func = None
    begin = 0
    with installed() if args.ours else contextlib.nullcontext():
        if args.load:
            one_step(model, optimizer, 0)  # the states of torch's Adam are made by its first step
            begin = load(model, optimizer, args.load)
        end = begin + args.steps
        for step in range(begin, end):
            loss = one_step(model, optimizer, step)
            if loss is not None and is_first_of_stage():
                print(f"step {step} loss {loss.hex()} {loss:.6f}", flush=True)
            if step + 1 == (args.save_at or end):
                for each in args.save:
                    save(model, optimizer, *each.split("=", 1), step + 1, args)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
