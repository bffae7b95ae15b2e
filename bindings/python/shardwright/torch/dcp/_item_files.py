# SPDX-License-Identifier: Apache-2.0
"""Files of items that the library writes inside of a save whose planner, plans and index are torch's, and how their digests come
from each rank to the one that makes the index: beside the place of the first item of a file, until `taken` takes them away.
"""
from __future__ import annotations

import collections
import dataclasses
import hashlib
import io
import logging
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.distributed.checkpoint import filesystem as _original
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType
from torch.distributed.checkpoint.storage import WriteResult

from ...errors import DataLossError, InvalidArgumentError, PermissionDeniedError
from ...layout import Shard
from ...tensor import dtype_number
from .. import _items

SUFFIX = ".distcp"
_NAME_BYTES_MAX = 65535
_PAIRS = torch.float4_e2m1fn_x2  # counts pairs of elements, so its boxes are not those of the library

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Prefix(_original._StoragePrefix):
    """What the files of a rank are called. `generation`: 32 hex digits, those of all ranks of a save."""

    generation: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)
    uses: int = 0

    def next_generation(self) -> str:
        """The generation of a save. A planner of torch that caches its plan has that of an earlier save, and so have the other
        ranks whose plans did not change: all of them go on to the same new one."""
        self.uses += 1
        return self.generation if self.uses == 1 else hashlib.sha256(f"{self.generation} {self.uses}".encode()).hexdigest()[:32]


def with_generation(plans: Sequence[SavePlan]) -> list[SavePlan]:
    """Plans that have prefixes of torch, with one generation for all of them."""
    generation = uuid.uuid4().hex
    return [dataclasses.replace(plan, storage_data=Prefix(plan.storage_data.prefix, generation))
            if type(plan.storage_data) in (Prefix, _original._StoragePrefix) else plan for plan in plans]


@dataclasses.dataclass
class _FirstPlace(_original._StorageInfo):
    """The place of the first item of a file, and what the library says of the whole file."""

    digests: bytes = b""
    generation: str = ""


# ---- on each rank ----

def write(items: Sequence[WriteItem], planner: SavePlanner, folder: str, name: str, generation: str,
          options: dict[str, Any]) -> tuple[list[WriteResult], list[WriteItem]]:
    """Writes the items that the library can describe into a new file; gives their results, and the other items."""
    values: dict[str, list[tuple[WriteItem, torch.Tensor]]] = {}
    archives: dict[str, tuple[WriteItem, Any]] = {}
    others = []
    for item in items:
        key = item.index.fqn
        if not _is_known(item) or key in archives:
            others.append(item)
        elif item.type == WriteItemType.BYTE_IO:
            stream = planner.resolve_data(item)
            if isinstance(stream, io.BytesIO) and key not in values and stream.getbuffer().nbytes:
                archives[key] = (item, stream.getbuffer())
            else:
                others.append(item)
        elif (tensor := _on_host(item, planner.resolve_data(item))) is not None and _fits(item, values.get(key)):
            values.setdefault(key, []).append((item, tensor))
        else:
            others.append(item)
    if not values and not archives:
        return [], others
    places, digests = _items.write_items({key: _entry(parts) for key, parts in values.items()}, folder, name,
                                         archives={key: data for key, (_, data) in archives.items()}, **options)
    written: dict[str, list[WriteItem]] = {key: [item for item, _ in parts] for key, parts in values.items()}
    written |= {key: [item] for key, (item, _) in archives.items()}
    order = {key: iter(each) for key, each in written.items()}
    results = [WriteResult(next(order[key]).index, length, _original._StorageInfo(name, offset, length))
               for key, offset, length in places]
    first = results[0].storage_data
    results[0] = dataclasses.replace(results[0], storage_data=_FirstPlace(
        name, first.offset, first.length, digests=digests, generation=generation))
    return results, others


def _is_known(item: WriteItem) -> bool:
    """Whether name and dtype of an item are among those of the library."""
    try:
        if len(item.index.fqn.encode()) > _NAME_BYTES_MAX:
            return False
        if item.type != WriteItemType.BYTE_IO:
            found: Any = item.tensor_data
            dtype_number(str(found.properties.dtype).removeprefix("torch."))
            return bool(found.properties.dtype != _PAIRS)
    except (AttributeError, UnicodeEncodeError, InvalidArgumentError):
        return False
    return True


def _on_host(item: WriteItem, value: Any) -> torch.Tensor | None:
    """The elements of an item in host memory; None for what is not what the item, and so the index, says."""
    data: Any = item.tensor_data
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided or value.device.type == "meta":
        return None
    if value.dtype != data.properties.dtype or tuple(value.shape) != tuple(data.chunk.sizes):
        return None
    if not _is_box(data):
        return None
    found: torch.Tensor = value.detach().resolve_conj().resolve_neg().to("cpu")
    return found


def _is_box(data: Any) -> bool:
    start, sizes, shape = tuple(data.chunk.offsets), tuple(data.chunk.sizes), tuple(data.size)
    return len(start) == len(sizes) == len(shape) and all(
        0 <= o and o + s <= n for o, s, n in zip(start, sizes, shape, strict=True))


def _fits(item: WriteItem, parts: list[tuple[WriteItem, torch.Tensor]] | None) -> bool:
    """Whether an item is another shard of the tensor that earlier ones are of."""
    if not parts:
        return True
    data: Any = item.tensor_data
    first: Any = parts[0][0].tensor_data
    return tuple(data.size) == tuple(first.size) and data.properties.dtype == first.properties.dtype and all(
        tuple(other.tensor_data.chunk.offsets) != tuple(data.chunk.offsets) for other, _ in parts)  # type: ignore[union-attr]


def _entry(parts: list[tuple[WriteItem, torch.Tensor]]) -> Shard:
    """All shards of a tensor; several are copied to lie one behind the other."""
    chunks: list[Any] = [item.tensor_data.chunk for item, _ in parts]  # type: ignore[union-attr]
    boxes = tuple((tuple(chunk.offsets), tuple(chunk.sizes)) for chunk in chunks)
    tensors = [tensor for _, tensor in parts]
    local = tensors[0]
    if len(tensors) > 1:
        runs = [tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in tensors]
        local = torch.cat(runs).view(local.dtype)
    return Shard(local, tuple(parts[0][0].tensor_data.size), boxes)  # type: ignore[union-attr]


# ---- where the index is made ----

def taken(results: Iterable[list[WriteResult]]) -> tuple[dict[Any, Any], list[bytes]]:
    """Places of all items in torch's own words, and what write_digests takes: of the generation that most files have."""
    places, found = {}, collections.defaultdict(list)
    for result in (result for each in results for result in each):
        place = result.storage_data
        if isinstance(place, _FirstPlace):
            found[place.generation].append(place.digests)
            place = _original._StorageInfo(place.relative_path, place.offset, place.length)
        places[result.index] = place
    return places, max(found.values(), key=len, default=[])


def write_digests(folder: str, index: bytes, found: list[bytes], durability: dict[str, Any]) -> None:
    """Puts digests beside an index that is put in place next. An index with more in it than the library reads has none."""
    try:
        _items.write_digests(folder, index, found, **durability)
    except (DataLossError, PermissionDeniedError) as e:
        logger.warning("%s gets no digests: %s", folder, e)


def digests_file_of(name: str) -> str | None:
    """The file of digests that goes with a file of data of that name; None for names that have no generation."""
    parts = name.rsplit(".", 2)  # what Megatron puts in front may have dots
    known = len(parts) == 3 and len(parts[1]) == 32 and not set(parts[1]) - set("0123456789abcdef")
    return f".shardwright.{parts[1]}.digests" if known else None
