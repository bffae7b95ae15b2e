# SPDX-License-Identifier: Apache-2.0
"""Open checkpoints: names, shapes, slices, objects, digests, verification. Nothing is read before it is asked for."""
from __future__ import annotations

import io
import json
import operator
import os
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from typing import Any, NamedTuple, Unpack

from . import _buffers, _html, _log, _object_stream, _options, _pickles, context
from ._library import native
from ._options import OpenOptions
from .errors import InvalidArgumentError, OutOfRangeError, ShardwrightError, UnimplementedError
from .report import Report
from .state import object_value
from .storage import handle_of as storage_handle
from .tensor import NUMPY_DTYPES, Tensor, allocate

_DIGESTS = {"xxh3": 0, "sha256": 1}
_DEEP, _APPLY, _WHOLE_PARTS = 1, 1, 2
_CPU_DEVICE = (1, 0)  # of DLPack
_ITERATED_BYTES = 16 << 20  # of one read while rows are iterated


class Chunk(NamedTuple):
    """A box of a tensor with stored bytes, and where they lie; rank -1 = the writer is unknown."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    file: str
    offset: int
    nbytes: int
    rank: int


class _Row(NamedTuple):
    """What the catalog says of a tensor; `info` has the fields of shw_tensor_info."""

    info: Any
    dtype: str
    shape: tuple[int, ...]

    @property
    def dtype_number(self) -> int:
        return int(self.info.dtype)


def path_argument(path: Any, storage: Any) -> bytes:
    """Bytes of a path (file system) or key prefix (storage)."""
    if storage is None:
        return os.fsencode(path)
    if not isinstance(path, str):
        raise InvalidArgumentError("with a storage the path is a key prefix, which is text", {"parameter": "path"})
    return path.encode("utf-8")


class StoredTensor:
    """A tensor of a checkpoint. Indexing reads just what is asked for: numpy arrays where numpy is installed and has the
    dtype, else Tensors. Immutable; valid while the checkpoint is open."""

    __slots__ = ("_checkpoint", "_index", "_row", "name")

    def __init__(self, checkpoint: Checkpoint, index: int, row: _Row, name: str) -> None:
        self._checkpoint, self._index, self._row, self.name = checkpoint, index, row, name

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the whole tensor."""
        return self._row.shape

    @property
    def dtype(self) -> str:
        """Name of the dtype, such as "bfloat16"."""
        return self._row.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._row.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(self._row.info.byte_size)

    @property
    def kind(self) -> str:
        """"replicated", "sharded" or "rank_local"."""
        return _options.KIND_NAMES.get(self._row.info.kind, "auto")

    @property
    def rank(self) -> int:
        """Owner of a rank-local tensor, else -1."""
        return int(self._row.info.rank)

    @property
    def path(self) -> list[Any]:
        """Nested path: text and integer keys, positions in lists as one-element lists."""
        text = native.shw_checkpoint_tensor_path(self._checkpoint._handle, self._index)
        return list(json.loads(text)) if text else [self.name]

    def chunks(self) -> list[Chunk]:
        """Where the bytes lie."""
        handle, info = self._checkpoint._handle, self._row.info
        rows = native.shw_py_checkpoint_chunks(handle, info.first_chunk, info.chunk_count)
        return [Chunk(offsets, sizes, native.shw_checkpoint_file_name(handle, chunk.file), chunk.offset, chunk.byte_size,
                      chunk.rank)
                for chunk, offsets, sizes in rows]

    def read(self, offsets: Sequence[int] | None = None, sizes: Sequence[int] | None = None, *,
             out: Any = None) -> Any:
        """Reads one box (None = all of it) into a new Tensor, or into `out`, a writable host tensor of that shape and
        dtype. OutOfRangeError for a box that leaves the tensor, InvalidArgumentError for negative numbers."""
        if (offsets is None) != (sizes is None):
            raise InvalidArgumentError("offsets and sizes belong together", {"parameter": "sizes"})
        shape = self.shape if sizes is None else tuple(int(s) for s in sizes)
        if offsets is not None and not len(offsets) == len(shape) == self.ndim:
            raise InvalidArgumentError(f"the box has {len(offsets)} offsets and {len(shape)} sizes, tensor {self.name!r} "
                                       f"has {self.ndim} dimensions", {"tensor": self.name})
        if sizes is not None:
            self._check_box(offsets or (), shape)
        target = allocate([self._row.dtype_number], [shape])[0] if out is None else out
        columns, staged = native.shw_py_columns(True, None), list[_buffers.Staged]()
        if not _buffers.import_leaf(columns, self.name.encode(), b"", target, None, staged):
            raise InvalidArgumentError(f"out is a {type(out).__qualname__}, which is no host tensor", {"parameter": "out"})
        native.shw_py_checkpoint_read(self._checkpoint._handle, self._index,
                                      None if offsets is None else tuple(offsets), shape, columns)
        for array in staged:
            array.put_back()
        return target

    def _check_box(self, offsets: Sequence[int], sizes: Sequence[int]) -> None:
        """As the library does, before memory is taken for it."""
        for start, size, extent in zip(offsets, sizes, self.shape, strict=True):
            if start < 0 or size < 0 or start + size > extent:
                raise self._box_error(offsets, sizes)

    def _box_error(self, offsets: Sequence[int], sizes: Sequence[int]) -> ShardwrightError:
        rows = list(zip(offsets, sizes, self.shape, strict=True))
        box = f"[{', '.join(f'{start}:{start + size}' for start, size, _ in rows)}]"
        details = {"tensor": self.name, "box": box}
        cause = f"cannot read box {box} of tensor '{self.name}': "
        for dim, (start, size, _) in enumerate(rows):
            if start < 0 or size < 0:
                return InvalidArgumentError(f"{cause}dimension {dim} of the box is negative: {size} elements from {start}",
                                            details)
        dim = next(d for d, (start, size, extent) in enumerate(rows) if start + size > extent)
        start, size, extent = rows[dim]
        return OutOfRangeError(f"{cause}the box leaves the shape in dimension {dim}: {size} elements from {start} of {extent}",
                               details)

    def __getitem__(self, key: Any) -> Any:
        offsets, sizes, steps, kept = _box_of(key, self.shape, self.name)
        values = self.read(offsets, sizes)
        array = _as_array(values)
        if array is None:
            if any(step != 1 for step in steps):
                raise UnimplementedError(f"a step other than 1 needs numpy and a dtype that numpy has, not {self.dtype}")
            return _reshaped(values, kept)
        return array[tuple(slice(None, None, step) if kept[d] else 0 for d, step in enumerate(steps))]

    def tensor(self) -> Tensor:
        """The whole tensor."""
        whole: Tensor = self.read()
        return whole

    def numpy(self) -> Any:
        """The whole tensor as a numpy array."""
        return self.tensor().numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """For numpy.asarray: the whole tensor, in one read. ValueError for copy=False: a read is always a copy."""
        if copy is False:
            raise ValueError(f"tensor {self.name!r} lies in a checkpoint: reading it makes a copy, so copy=False cannot be had")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, *, copy: bool | None = None, **keywords: Any) -> Any:
        """For torch.as_tensor and its like: the whole tensor, in one read, flagged as a copy. BufferError for copy=False."""
        if copy is False:
            raise BufferError(f"tensor {self.name!r} lies in a checkpoint: reading it makes a copy, so copy=False cannot be had")
        return native.shw_py_dlpack_of_copy(self.tensor(), keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Host memory."""
        return _CPU_DEVICE

    def __iter__(self) -> Iterator[Any]:
        """What `self[0]`, `self[1]`, ... are, read many at a time."""
        rows = len(self)  # TypeError for a tensor without dimensions
        return self._rows_of_blocks(max(1, _ITERATED_BYTES * rows // max(1, self.nbytes)))

    def _rows_of_blocks(self, step: int) -> Iterator[Any]:
        for first in range(0, self.shape[0], step):
            block = self[first:first + step]
            if isinstance(block, Tensor):
                yield from _rows_of(block, self._row.dtype_number)
            else:
                yield from block

    def digest(self, algorithm: str = "xxh3") -> str:
        """Digest of the row-major bytes, whatever the layout: "xxh3" (XXH3-128) or "sha256"."""
        number = _options.word("algorithm", algorithm, _DIGESTS)
        return str(native.shw_checkpoint_digests(self._checkpoint._handle, [self._index], number)[0].decode())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"shardwright.StoredTensor({self.name!r}, shape={self.shape}, dtype={self.dtype})"


def _as_array(values: Tensor) -> Any:
    if values.dtype not in NUMPY_DTYPES:
        return None
    try:
        return values.numpy()
    except ImportError:
        return None


def _reshaped(values: Tensor, kept: list[bool]) -> Tensor:
    shape = tuple(extent for extent, keep in zip(values.shape, kept, strict=True) if keep)
    if shape == tuple(values.shape):
        return values
    made = allocate([native.shw_dtype_parse(values.dtype)], [shape])[0]
    made.raw()[:] = values.raw()
    return made


def _rows_of(block: Tensor, dtype_number: int) -> Iterator[Tensor]:
    """Tensors of one dimension less, in memory of their own."""
    count, shape = block.shape[0], tuple(block.shape[1:])
    data = block.raw()
    if len(data) % count != 0:
        raise UnimplementedError(f"rows of {shape} elements of {block.dtype} do not begin on whole bytes")
    size = len(data) // count
    for i, row in enumerate(allocate([dtype_number] * count, [shape] * count)):
        row.raw()[:] = data[i * size:(i + 1) * size]
        yield row


def _box_of(key: Any, shape: tuple[int, ...], name: str) -> tuple[list[int], list[int], list[int], list[bool]]:
    """Offsets, sizes, steps of an index expression, and which dimensions stay."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if parts.count(Ellipsis) > 1:
        raise IndexError("an index has at most one '...'")
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at:at + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    if len(parts) > len(shape):
        raise OutOfRangeError(f"{len(parts)} indices for tensor {name!r} of {len(shape)} dimensions", {"tensor": name})
    parts += [slice(None)] * (len(shape) - len(parts))
    offsets, sizes, steps, kept = [], [], [], []
    for part, extent in zip(parts, shape, strict=True):
        if isinstance(part, slice):
            start, stop, step = part.indices(extent)
            if step < 0:
                raise InvalidArgumentError("a step must be positive", {"tensor": name})
            sizes.append(max(0, stop - start))
            kept.append(True)
        else:
            start, step = operator.index(part), 1
            start += extent if start < 0 else 0
            if not 0 <= start < extent:
                raise OutOfRangeError(f"index {part} is outside dimension of extent {extent} of tensor {name!r}",
                                      {"tensor": name})
            sizes.append(1)
            kept.append(False)
        offsets.append(start)
        steps.append(step)
    return offsets, sizes, steps, kept


class Checkpoint(Mapping[str, StoredTensor]):
    """An open checkpoint; made by shardwright.open. A mapping from the names of its tensors, each once, to tensors that are
    read when they are indexed; opened with a `rank`, of those that this rank is given. Several threads may use it at the
    same time. Two checkpoints are equal when they are the same object: compare digests to compare contents."""

    def __init__(self, path: Any, *, storage: Any = None, rank: int = -1, **options: Unpack[OpenOptions]) -> None:
        self._path = path
        self._rank = rank
        self._closed = False
        self._handle: Any = native.shw_checkpoint_open(context.shared()._handle, storage_handle(storage),
                                                       path_argument(path, storage), _options.open_options(options))
        self._names: dict[str, None] | None = None
        self._owners: dict[str, set[int]] | None = None

    def _table(self) -> list[_Row]:
        count = native.shw_checkpoint_tensor_count(self._handle)
        return [_Row(*row) for row in native.shw_py_checkpoint_tensors(self._handle, 0, count)]

    def keys(self) -> KeysView[str]:
        """Names of the tensors, each once; opened with a `rank`, those that this rank is given."""
        return self._known_names().keys()

    def ranks(self, name: str) -> list[int]:
        """Ranks that have a rank_local tensor or object of that name, ascending; none for one that all share.
        MissingNameError."""
        if self._owners is None:
            owners: dict[str, set[int]] = {}
            tensors = zip((row.info.rank for row in self._table()), self._all_names(), strict=True)
            for rank, each in [*tensors, *self._object_owners()]:
                owners.setdefault(each, set()).add(rank)
            self._owners = owners
        found = self._owners.get(name)
        if found is None:
            native.shw_checkpoint_find_tensor(self._handle, name, -1)  # names the nearest
        return sorted((found or set()) - {-1})

    def _object_owners(self) -> list[tuple[int, str]]:
        names = native.shw_checkpoint_object_names(self._handle)
        return [(native.shw_checkpoint_object_rank(self._handle, i), name.decode("utf-8")) for i, name in enumerate(names)]

    def _all_names(self) -> list[str]:
        return [name.decode("utf-8") for name in native.shw_checkpoint_tensor_names(self._handle)]

    def _known_names(self) -> dict[str, None]:
        if self._names is None:
            names = self._all_names()
            if self._rank >= 0:
                names = [name for name, row in zip(names, self._table(), strict=True) if row.info.rank in (-1, self._rank)]
            self._names = dict.fromkeys(names)
        return self._names

    def tensor(self, name: str, rank: int | None = None) -> StoredTensor:
        """A tensor by name; of rank-local ones that of `rank`. MissingNameError (a KeyError) offers the nearest names."""
        index = int(native.shw_checkpoint_find_tensor(self._handle, name, self._rank if rank is None else rank))
        return StoredTensor(self, index, _Row(*native.shw_py_checkpoint_tensors(self._handle, index, 1)[0]), name)

    def tensors(self) -> list[StoredTensor]:
        """All tensors, those of other ranks included."""
        return [StoredTensor(self, i, row, name)
                for i, (row, name) in enumerate(zip(self._table(), self._all_names(), strict=True))]

    def __getitem__(self, name: str) -> StoredTensor:
        return self.tensor(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._known_names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __len__(self) -> int:
        return len(self._known_names())

    def object_names(self) -> list[str]:
        """Names of the byte objects, each once; opened with a `rank`, those that this rank is given."""
        return list(dict.fromkeys(name for rank, name in self._object_owners()
                                  if self._rank < 0 or rank in (-1, self._rank)))

    def object(self, name: str, *, rank: int | None = None, trust_pickle: bool = False,
               allow_types: Iterable[Any] | None = None) -> Any:
        """Value of a byte object: JSON is decoded, everything else is bytes; a pickle is read with `allow_types` and run
        with `trust_pickle`, as load describes them. MissingNameError (a KeyError) offers the nearest names."""
        types = _pickles.chosen(allow_types)
        index = native.shw_checkpoint_find_object(self._handle, name, self._rank if rank is None else rank)
        data = native.shw_checkpoint_read_objects(self._handle, [index])[0]
        kind = native.shw_checkpoint_object_content_type(self._handle, index)
        return object_value(data, kind, name, trust_pickle, types)

    def open_object(self, name: str, *, rank: int | None = None) -> io.BufferedReader:
        """A byte object as a stream that can be read and sought, for those that are larger than memory need be.
        The checkpoint stays open while the stream does. MissingNameError (a KeyError) offers the nearest names."""
        index = native.shw_checkpoint_find_object(self._handle, name, self._rank if rank is None else rank)
        return io.BufferedReader(_object_stream.ObjectStream(self._handle, index), _object_stream.BUFFER_BYTES)

    def object_content_type(self, name: str) -> str:
        """Content type of a byte object, such as "application/json"."""
        index = native.shw_checkpoint_find_object(self._handle, name, self._rank)
        return str(native.shw_checkpoint_object_content_type(self._handle, index))

    def describe_object(self, name: str, *, rank: int | None = None) -> dict[str, Any]:
        """What a byte object is, for people: `content_type`, `bytes` and `value`, in which a pickle says what would be made of
        it. Nothing of it is run. MissingNameError (a KeyError) offers the nearest names."""
        index = native.shw_checkpoint_find_object(self._handle, name, self._rank if rank is None else rank)
        return dict(json.loads(native.shw_checkpoint_describe_object(self._handle, index)[0]))

    def objects(self, *, trust_pickle: bool = False, allow_types: Iterable[Any] | None = None) -> dict[str, Any]:
        """Values of all byte objects by name, as `object` gives them."""
        types = _pickles.chosen(allow_types)
        return {name: self.object(name, trust_pickle=trust_pickle, allow_types=types) for name in self.object_names()}

    def info(self) -> dict[str, Any]:
        """Format, generation, counts, metadata, files, tensors and objects as plain values."""
        return dict(json.loads(native.shw_checkpoint_info(self._handle)[0]))

    def files(self) -> list[str]:
        """Keys of the data files, relative to the checkpoint."""
        count = native.shw_checkpoint_file_count(self._handle)
        return [native.shw_checkpoint_file_name(self._handle, i) for i in range(count)]

    @property
    def metadata(self) -> dict[str, str]:
        """What the saver noted: text to text."""
        count = native.shw_checkpoint_metadata_count(self._handle)
        return {native.shw_checkpoint_metadata_key(self._handle, i): native.shw_checkpoint_metadata_value(self._handle, i)
                for i in range(count)}

    @property
    def format(self) -> str:
        """Name of the format, such as "native"."""
        return str(native.shw_checkpoint_format(self._handle))

    @property
    def generation(self) -> str:
        """Generation that is read; "" where the format has none."""
        return str(native.shw_checkpoint_generation(self._handle))

    @property
    def world_size(self) -> int:
        """Number of ranks that saved it."""
        return int(native.shw_checkpoint_world_size(self._handle))

    @property
    def created_ns(self) -> int:
        """Time of the save in ns since 1970 UTC; 0 when unknown."""
        return int(native.shw_checkpoint_created_ns(self._handle))

    def verify(self, deep: bool = False) -> Report:
        """Checks the manifest and each file's size, header and index; `deep` checks every byte. All of it is read again,
        whatever this checkpoint read before.

        Damage is DataLossError with the place of the first in its details; `find_damage` lists all."""
        with _log.handed_on():
            return Report(native.shw_checkpoint_verify(self._handle, _DEEP if deep else 0))

    def find_damage(self, deep: bool = False) -> Report:
        """As `verify`, but all damage is listed in the report's `damage` instead of raised."""
        with _log.handed_on():
            return Report(native.shw_checkpoint_find_damage(self._handle, _DEEP if deep else 0))

    def digest(self, algorithm: str = "xxh3") -> dict[str, dict[str, Any]]:
        """Digests of all tensors: {name: {"dtype", "shape", "digest"}}. They do not depend on layout and format."""
        number = _options.word("algorithm", algorithm, _DIGESTS)
        tensors = [self.tensor(name) for name in self.keys()]
        texts = native.shw_checkpoint_digests(self._handle, [t._index for t in tensors], number)
        return {t.name: {"dtype": t.dtype, "shape": list(t.shape), "digest": text.decode()}
                for t, text in zip(tensors, texts, strict=True)}

    def close(self) -> None:
        """Releases the checkpoint. Twice is fine; a later use is FailedPreconditionError."""
        self._closed = True
        self._names = self._owners = None
        native.shw_py_close(self._handle)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._closed:
            return f"shardwright.Checkpoint({self._path!r}, closed)"
        return f"shardwright.Checkpoint({self._path!r}, {self.format}, {native.shw_checkpoint_tensor_count(self._handle)} tensors)"

    def _repr_html_(self) -> str:
        """For notebooks: what lies in the checkpoint, its largest part left to `info`."""
        if self._closed:
            return _html.paragraph(repr(self))
        tensors = [(t.name, t.dtype, _html.extents(t.shape), _html.size(t.nbytes), _html.kind(t.kind, t.rank))
                   for t in self._first_tensors(_html.ROWS_MAX)]
        facts = {"format": self.format, "generation": self.generation, "ranks": str(self.world_size),
                 "byte objects": str(native.shw_checkpoint_object_count(self._handle)), **self.metadata}
        count = native.shw_checkpoint_tensor_count(self._handle)
        return _html.section(f"Checkpoint {os.fsdecode(self._path)}", facts) + _html.table(
            ("tensor", "dtype", "shape", "bytes", "held"), tensors, count)

    def _first_tensors(self, limit: int) -> list[StoredTensor]:
        rows = native.shw_py_checkpoint_tensors(self._handle, 0, min(limit, native.shw_checkpoint_tensor_count(self._handle)))
        return [StoredTensor(self, i, _Row(*row), name) for i, (row, name) in enumerate(zip(rows, self._all_names(), strict=False))]

    def __reduce__(self) -> Any:
        raise TypeError("an open Checkpoint is not pickled; open the path again in the other process")


def collect_garbage(path: Any, *, storage: Any = None, apply: bool = False, grace: float | None = None) -> Report:
    """Finds (with `apply` removes) generations at a path that no manifest names.

    `grace`: seconds since their last change; None = 24 hours, negative = any age. The report's `removed` names them."""
    limit = _options.nanoseconds("grace", grace) if grace != 0 else -1
    with _log.handed_on():
        return Report(native.shw_checkpoint_gc(context.shared()._handle, storage_handle(storage),
                                               path_argument(path, storage), limit, _APPLY if apply else 0))


def remove_entries(path: Any, prefix: str, *, storage: Any = None, whole_parts: bool = False, apply: bool = False) -> Report:
    """Finds (with `apply` removes) tensors and objects of a checkpoint of torch DCP or Megatron whose names begin with a prefix,
    and the files that hold nothing else.

    `whole_parts`: names end behind the prefix, or go on with "." or "/", so that "layer1" has no "layer10". The report's
    `removed` names the entries with the bytes that they take, `files` and `bytes_files` count the files, and `notes` name them.
    The index without the entries, which loses nothing else, is durable before a file goes; digests and integrity.json follow.
    What shares its file with something else stays there and is in no index. Killed, the next call finishes it, whatever its
    prefix. Raises NotFoundError also when no name begins so, UnimplementedError for other formats, UnavailableError while a
    save runs there."""
    flags = (_APPLY if apply else 0) | (_WHOLE_PARTS if whole_parts else 0)
    with _log.handed_on():
        return Report(native.shw_checkpoint_remove(context.shared()._handle, storage_handle(storage),
                                                   path_argument(path, storage), prefix, flags))


def latest(path: Any, *, storage: Any = None) -> str:
    """Path of the newest whole step below a run directory, as `load` and `open` take it.

    `path`: a run directory with `step-NNNNNNNN` directories, or its key prefix in `storage`. Steps that are damaged or were
    never committed are passed over with a warning in the log. Raises NotFoundError when no step is whole, and the failure
    itself when a step cannot be looked at: an older one does not stand in for it."""
    with _log.handed_on():
        found = native.shw_checkpoint_latest(context.shared()._handle, storage_handle(storage),
                                             path_argument(path, storage))
    return os.fsdecode(found[0]) if storage is None else found[0].decode("utf-8")


def convert(source: Any, target: Any, *, source_storage: Any = None, target_storage: Any = None,
            **options: Unpack[_options.ConvertOptions]) -> Report:
    """Saves the checkpoint at `source` to `target` in another format, in bounded memory; the source is only read. It may be
    a directory of Megatron-core's zarr backend, which nothing else takes.

    What was written stays when the call fails or its process is killed, and the same call goes on with it. In the end the
    digests of all tensors are compared, unless `compare` is false."""
    how = _options.convert_options(options)
    with _log.handed_on():
        return Report(native.shw_convert(context.shared()._handle, storage_handle(source_storage),
                                         path_argument(source, source_storage), storage_handle(target_storage),
                                         path_argument(target, target_storage), how))


def reshard(source: Any, target: Any, *, source_storage: Any = None, target_storage: Any = None,
            **options: Unpack[_options.ReshardOptions]) -> Report:
    """Saves the checkpoint of Megatron at `source` to `target` as a job with other parallel sizes would have saved it.

    Sizes that are 0 or not given are those of the source; `job` says them as JSON. The states of a distributed optimizer that is
    stored in buckets get the shapes of their parameters: what lies in a bucket is proved by its contents, and what cannot be
    proved is refused by name unless `map` says it. Neither torch nor megatron-core is needed, and memory is bounded. As with
    `convert`, what was written stays when the call fails, and the same call goes on with it. With `dry_run` nothing is written."""
    how = _options.reshard_options(options)
    with _log.handed_on():
        return Report(native.shw_reshard(context.shared()._handle, storage_handle(source_storage),
                                         path_argument(source, source_storage), storage_handle(target_storage),
                                         path_argument(target, target_storage), how))


def scan_pickles(path: Any, *, storage: Any = None) -> dict[str, Any]:
    """What the pickles below `path` would import and call if they were unpickled; nothing of them is.

    `path`: a file, or a directory whose files are all looked at, whether a checkpoint can be opened there or not. The result has
    `globals` (each with `module`, `name`, `known`, `calls`, `file`, `record`, `offset`, ...), `unknown` (how many are not known to
    make plain values), `failures` and `unread` (what could not be looked at to its end), `files`, `pickles` and `notes`. Raises
    NotFoundError."""
    with _log.handed_on():
        found = native.shw_scan_pickles(context.shared()._handle, storage_handle(storage), path_argument(path, storage))
    return dict(json.loads(found[0]))


def clean_pickles(source: Any, target: Any, *, source_storage: Any = None, target_storage: Any = None) -> dict[str, Any]:
    """Writes the files with pickles at `source` once more to `target`, with None in place of what is not known.

    The source is only read. Of a file of torch.save, or a pickle, `target` is a whole file. Of a directory, indexes of torch DCP
    and other files with pickles are written below `target`; data files stay where they are, and an index leaves out entries
    whose items are not clean. The result has `files`, each with `file`, `replaced` and `left_out`. Raises AlreadyExistsError,
    DataLossError, NotFoundError, UnimplementedError."""
    with _log.handed_on():
        written = native.shw_clean_pickles(context.shared()._handle, storage_handle(source_storage),
                                           path_argument(source, source_storage), storage_handle(target_storage),
                                           path_argument(target, target_storage))
    return dict(json.loads(written[0]))


def list_steps(path: Any, *, storage: Any = None) -> dict[str, Any]:
    """Checkpoints step-NNNNNNNN, and iter_NNNNNNN of Megatron, below a run directory, the newest whole one, and what the
    tracker of Megatron says: its text (`tracker`) and the step that it names (`tracked`)."""
    found = native.shw_checkpoint_list_steps(context.shared()._handle, storage_handle(storage),
                                             path_argument(path, storage))
    return dict(json.loads(found[0]))
