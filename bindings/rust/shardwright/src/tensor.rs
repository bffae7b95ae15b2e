// SPDX-License-Identifier: Apache-2.0
//! Tensors in memory of the library, as reads give them.

use crate::dtype::{DType, Element, first_no_bool};
use crate::error::{Error, ErrorKind, Result};
use shardwright_sys::{ffi, raw};

/// A dense row-major tensor. Immutable, thread-safe.
pub struct Tensor {
    handle: *mut ffi::shw_owned_tensor,
    dtype: DType,
    shape: Vec<i64>,
    data: *const u8,
    size: usize,
}

// SAFETY: the bytes are private and never change.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

impl Tensor {
    /// Takes ownership of a handle.
    pub(crate) fn from_handle(handle: *mut ffi::shw_owned_tensor) -> Result<Tensor> {
        let mut tensor = Tensor { handle, dtype: DType(0), shape: Vec::new(), data: std::ptr::null_mut(), size: 0 };
        // SAFETY: the handle is live and owned by the result, which releases it also when this fails.
        let view = unsafe { raw::owned_tensor_describe(handle) }?;
        tensor.dtype = DType(view.dtype);
        (tensor.data, tensor.size) = (view.data.cast(), view.byte_size as usize);
        if view.ndim > 0 {
            tensor.shape = unsafe { std::slice::from_raw_parts(view.shape, view.ndim as usize) }.to_vec();
        }
        Ok(tensor)
    }

    /// A copy of the elements; INVALID_ARGUMENT when their number does not fit the shape.
    pub fn from_elements<T: Element>(shape: &[i64], elements: &[T]) -> Result<Tensor> {
        // SAFETY: the shape lives for the call.
        let handle = unsafe { raw::owned_tensor_create(T::DTYPE.0, shape.as_ptr(), shape.len() as i32) }?;
        let tensor = Tensor::from_handle(handle)?;
        let bytes = std::mem::size_of_val(elements);
        if bytes != tensor.size {
            let text = format!("{} elements for shape {shape:?}", elements.len());
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        if bytes > 0 {
            // SAFETY: both ranges have this many bytes, and nobody else sees the tensor yet.
            unsafe { std::ptr::copy_nonoverlapping(elements.as_ptr().cast::<u8>(), tensor.data.cast_mut(), bytes) };
        }
        Ok(tensor)
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Row-major little-endian bytes.
    pub fn bytes(&self) -> &[u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: the library keeps this many bytes until the handle is released.
        unsafe { std::slice::from_raw_parts(self.data, self.size) }
    }

    /// The elements; INVALID_ARGUMENT when the dtype is not `T`'s, DATA_LOSS for a bool that is neither 0 nor 1.
    pub fn elements<T: Element>(&self) -> Result<&[T]> {
        if T::DTYPE != self.dtype {
            let text = format!("the tensor holds {}, not {}", self.dtype, T::DTYPE);
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        if self.size == 0 {
            return Ok(&[]);
        }
        if let (false, Some((at, byte))) = (T::ANY_BITS, first_no_bool(self.bytes())) {
            return Err(Error::new(ErrorKind::DataLoss, format!("element {at} of a bool tensor is the byte {byte}")));
        }
        // SAFETY: library memory is aligned to 64 bytes, and these bits are values of T.
        Ok(unsafe { std::slice::from_raw_parts(self.data.cast::<T>(), self.size / size_of::<T>()) })
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({}, {:?})", self.dtype, self.shape)
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_owned_tensor_release(self.handle) }
    }
}
