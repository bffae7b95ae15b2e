# SPDX-License-Identifier: Apache-2.0
"""A byte-level transformer of 24 million parameters, plain on purpose."""
import dataclasses

import torch
from torch import nn
from torch.nn import functional


@dataclasses.dataclass(frozen=True)
class Config:
    """257 symbols (256 bytes and a start mark) and 1,533 hidden units divide by neither 2 nor 4, so that the shards of
    some parameters are uneven on every mesh of the demo."""

    symbols: int = 257
    width: int = 512
    hidden: int = 1533
    heads: int = 8
    layers: int = 7
    context: int = 85


class Block(nn.Module):
    """Attention and a gated multilayer perceptron, each behind a norm and beside a shortcut."""

    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.attention_norm = nn.RMSNorm(config.width)
        self.query_key_value = nn.Linear(config.width, 3 * config.width, bias=False)
        self.attention_out = nn.Linear(config.width, config.width, bias=False)
        self.hidden_norm = nn.RMSNorm(config.width)
        self.gate = nn.Linear(config.width, config.hidden, bias=False)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.query_key_value(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.attention_out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.attention_norm(x))
        y = self.hidden_norm(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.symbols = nn.Embedding(config.symbols, config.width)
        self.positions = nn.Parameter(torch.randn(config.context, config.width) * 0.02)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width)
        self.head = nn.Linear(config.width, config.symbols, bias=False)
        nn.init.normal_(self.symbols.weight, std=0.02)

    def forward(self, tokens):
        x = self.symbols(tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss_of(model, tokens):
    """Mean cross entropy of the next byte; tokens: (sequences, context + 1)."""
    logits = model(tokens[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
