# SPDX-License-Identifier: Apache-2.0
"""Quantised tensors of Transformer Engine: stored and loaded in the precision that they stand for.

A load never quantises: the framework does that with what it was given, and the amax history of delayed scaling is not touched.
"""
from __future__ import annotations

import copy
from typing import Any

import torch

from .trees import dict_list_map_outplace, nested_values

# By name, so that Transformer Engine need not be there.
_QUANTISED = frozenset(("Float8Tensor", "Float8BlockwiseQTensor", "MXFP8Tensor", "NVFP4Tensor", "QuantizedTensor"))
_known: dict[type, bool] = {}


def is_float8tensor(tensor: Any) -> bool:
    """Whether a value is a quantised tensor of Transformer Engine: of such a class, with a way back to high precision."""
    kind = type(tensor)
    if kind not in _known:
        _known[kind] = hasattr(kind, "dequantize") and any(base.__name__ in _QUANTISED for base in kind.__mro__)
    return _known[kind]


def dequantised(tensor: Any) -> Any:
    """A quantised tensor in high precision; anything else as it is."""
    return tensor.dequantize() if is_float8tensor(tensor) else tensor


def with_high_precision(sharded_state_dict: Any) -> Any:
    """A request whose quantised destinations are tensors of the dtype that they stand for, without values. The given request
    and its tensors stay as they are."""

    def replaced(leaf: Any) -> Any:
        data: Any = getattr(leaf, "data", None)
        if not hasattr(leaf, "key") or not is_float8tensor(data):
            return leaf
        made = copy.copy(leaf)
        made.data = torch.empty(data.shape, dtype=data.dtype, device=data.device)
        return made

    return dict_list_map_outplace(replaced, sharded_state_dict)


def force_all_tensors_to_non_fp8(sharded_state_dict: Any) -> None:
    """Puts tensors in high precision, with their values, in the place of quantised data, in the given descriptors."""
    for leaf in nested_values(sharded_state_dict):
        if hasattr(leaf, "key") and is_float8tensor(getattr(leaf, "data", None)):
            leaf.data = leaf.data.dequantize()
