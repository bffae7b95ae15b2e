# SPDX-License-Identifier: Apache-2.0
"""Tensor: what a load without a target gives, and what reads give where numpy is missing or has no such dtype."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _small
from ._library import native
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy

# dtypes that numpy has under the same name; complex names differ from torch's by nothing but complex32.
NUMPY_DTYPES = frozenset(("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
                          "float32", "float64", "complex64", "complex128"))


def dtype_number(name: str) -> int:
    """Number of a dtype name, the same in all languages and in files (float32 is 12); InvalidArgumentError for a name that is
    none."""
    number: int = native.shw_dtype_parse(name)
    return number


def dtype_bits(number: int) -> int:
    """Bits of one element, 4 to 128; 0 for a number that is no dtype."""
    bits: int = native.shw_dtype_bits(number)
    return bits


class Tensor(native.TensorBase):
    """A dense row-major host tensor in memory of the library.

    Offers the buffer protocol where the dtype has a format, and DLPack, so that `numpy.asarray(t)` and
    `torch.from_dlpack(t)` share its bytes. `shape`, `dtype` (a name such as "bfloat16") and `nbytes` never change.
    """

    __slots__ = ()

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """The same bytes as a numpy array; with ml_dtypes also of its dtypes (elements below a byte are copied, each to a
        byte of its own). UnimplementedError for dtypes that neither has."""
        import numpy
        if self.dtype not in NUMPY_DTYPES:
            other: numpy.ndarray[Any, Any] = _small.array_of(self.raw(), self.dtype, dtype_number(self.dtype),
                                                             tuple(self.shape))
            return other
        return numpy.asarray(self)

    def raw(self) -> memoryview:
        """All bytes, packed, as a writable memoryview of uint8."""
        return memoryview(native.shw_py_tensor_view(Tensor, self))

    def tobytes(self) -> bytes:
        """A copy of all bytes, row-major and packed."""
        return bytes(self.raw())

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return int(self.shape[0])

    def __repr__(self) -> str:
        return f"shardwright.Tensor(shape={tuple(self.shape)}, dtype={self.dtype})"

    def __reduce__(self) -> Any:
        raise TypeError("a shardwright.Tensor is not pickled; pickle t.numpy(), or save it with shardwright.save")


def zeros(dtype: str, shape: tuple[int, ...]) -> Tensor:
    """A tensor of zeros.

    Args: dtype name, shape. Raises InvalidArgumentError for an unknown dtype or a negative extent.
    """
    return allocate([dtype_number(dtype)], [shape])[0]


def allocate(dtypes: list[int], shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """Many tensors of zeros by dtype number and shape; small ones share memory blocks."""
    for shape in shapes:
        if any(extent < 0 for extent in shape):
            raise InvalidArgumentError(f"shape {shape} has a negative extent")
    made: list[Tensor] = native.shw_py_tensor_allocate(Tensor, dtypes, shapes)
    return made
