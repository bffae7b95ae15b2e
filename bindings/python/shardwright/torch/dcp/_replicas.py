# SPDX-License-Identifier: Apache-2.0
"""Plain values of which ranks hold different ones: torch writes one of them, in silence. Names them, once per save."""
from __future__ import annotations

import fnmatch
import hashlib
import json
import logging
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ... import _options
from ...collective import Collective
from .planner import InvalidPlanError, flatten_state_dict

logger = logging.getLogger(__name__)
TENSOR_BYTES_MAX = 1 << 20  # of a plain tensor that is compared
_ALL_BYTES_MAX = 1 << 24  # of all plain tensors that are compared
_DIGEST_BYTES = 16
_SHOWN_MAX = 8


def differing(tree: Mapping[str, Any], collective: Collective, kinds: Any) -> list[str]:
    """Collective: the names of values that differ between ranks, without those that `kinds` declares rank_local."""
    own = _digests(tree, [glob for glob, kind in _options.pairs("kind", kinds, 2) if kind == "rank_local"])
    whole = hashlib.blake2b(json.dumps(own, sort_keys=True).encode(), digest_size=_DIGEST_BYTES).digest()
    gathered = collective.all_gather(whole)
    if gathered == whole * (len(gathered) // _DIGEST_BYTES):
        return []
    mine = json.dumps(own).encode()
    packed = collective.all_gather(len(mine).to_bytes(8, "little"))
    sizes = [int.from_bytes(packed[at:at + 8], "little") for at in range(0, len(packed), 8)]
    everything, position = collective.all_gather(mine, sizes), 0
    seen: dict[str, str] = {}
    found: dict[str, None] = {}
    for size in sizes:
        for name, digest in json.loads(everything[position:position + size]).items():
            if seen.setdefault(name, digest) != digest:
                found[name] = None
        position += size
    return list(found)


def warn(names: Sequence[str]) -> None:
    """One warning that says what is lost and how it is kept."""
    shown = ", ".join(names[:_SHOWN_MAX]) + (f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else "")
    logger.warning('ranks hold different values of %s, and one of them is written; declare them with '
                   'save(..., kind={"%s": "rank_local"}), then each rank gets its own back; verify_replicas="error" refuses '
                   "such a save", shown, names[0])


def refusal(names: Sequence[str]) -> InvalidPlanError:
    """What `verify_replicas="error"` raises."""
    return InvalidPlanError(f"ranks hold different values of {', '.join(names[:_SHOWN_MAX])}; declare them with "
                            'kind={...: "rank_local"}, or pass verify_replicas="off" to keep one of them', {"tensor": names[0]})


def _digests(tree: Mapping[str, Any], apart: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    room = _ALL_BYTES_MAX
    for name, value in flatten_state_dict(tree)[0].items():
        if any(fnmatch.fnmatchcase(name, glob) for glob in apart):
            continue
        data = _bytes_of(value)
        if data is None or len(data) > room:
            continue
        room -= len(data) if isinstance(value, torch.Tensor) else 0
        found[name] = hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
    return found


def _bytes_of(value: Any) -> Any:
    """What is compared of a value; None for what is not: parts of tensors, large tensors and those on devices."""
    if isinstance(value, torch.Tensor):
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.device.type != "cpu" or hasattr(value, "global_shape"):
            return None
        if value.layout != torch.strided or value.nbytes > TENSOR_BYTES_MAX:
            return None
        flat = value.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
        return memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else b""  # type: ignore[arg-type]
    if hasattr(value, "local_shards"):
        return None
    try:
        return pickle.dumps(value, 4)
    except Exception:  # of the user's own objects: they are not compared
        return None
