// SPDX-License-Identifier: Apache-2.0
//! States: the tensors and byte objects that one rank saves, or wants filled.

use crate::dtype::{DType, Element};
use crate::error::{Error, Result, StatusCode};
use crate::layout::Layout;
use crate::options::Kind;
use crate::text::{copy_bytes, sized_text};
use shardwright_sys::{ffi, raw};
use std::collections::HashMap;
use std::marker::PhantomData;

/// Boxes of a sharded tensor that this rank holds.
#[derive(Clone, Debug)]
pub struct Shard<'a> {
    /// Shape of the whole tensor.
    pub global_shape: &'a [i64],
    /// Offsets and sizes of each box, and the element of the local data where it starts.
    pub boxes: &'a [(&'a [i64], &'a [i64], i64)],
}

/// Memory of one tensor that the state owns.
struct Owned {
    bytes: Vec<u64>, // aligned for every element type
    size: usize,
}

/// Ordered entries of one rank. Memory is borrowed for `'a`; `State<'static>` owns or shares everything that it holds and
/// may go into jobs. Thread-compatible.
pub struct State<'a> {
    handle: *mut ffi::shw_state,
    owned: HashMap<String, Owned>,
    _borrowed: PhantomData<&'a mut [u8]>,
}

// SAFETY: nothing in a state is tied to a thread; non-const calls need &mut.
unsafe impl Send for State<'_> {}
// SAFETY: const calls may run together.
unsafe impl Sync for State<'_> {}

/// One tensor as the C call wants it.
struct Entry<'b> {
    name: &'b str,
    data: *mut u8,
    size: usize,
    dtype: DType,
    shape: &'b [i64],
    read_only: bool,
}

impl<'a> State<'a> {
    /// An empty state.
    ///
    /// # Panics
    /// When memory is out.
    #[allow(clippy::new_without_default)]
    pub fn new() -> State<'a> {
        // SAFETY: no arguments.
        let handle = unsafe { raw::state_create() }.expect("an empty state needs only memory");
        State {
            handle,
            owned: HashMap::new(),
            _borrowed: PhantomData,
        }
    }

    fn add_entry(
        &mut self,
        entry: &Entry,
        fill: impl FnOnce(&mut ffi::shw_tensor_batch),
    ) -> Result<()> {
        // SAFETY: plain structs for which all zero is valid.
        let mut tensor: ffi::shw_tensor = unsafe { std::mem::zeroed() };
        tensor.struct_size = size_of::<ffi::shw_tensor>() as u32;
        tensor.flags = if entry.read_only {
            ffi::SHW_TENSOR_READ_ONLY as u32
        } else {
            0
        };
        tensor.data = entry.data.cast();
        tensor.byte_size = entry.size as u64;
        tensor.device_type = 1;
        tensor.dtype_code = entry.dtype.code;
        tensor.dtype_bits = entry.dtype.bits;
        tensor.dtype_lanes = 1;
        tensor.ndim = entry.shape.len() as i32;
        tensor.shape = entry.shape.as_ptr();
        let name_offsets = [0, entry.name.len() as u64];
        let mut batch: ffi::shw_tensor_batch = unsafe { std::mem::zeroed() };
        batch.struct_size = size_of::<ffi::shw_tensor_batch>() as u32;
        batch.count = 1;
        batch.names = entry.name.as_ptr().cast();
        batch.name_offsets = name_offsets.as_ptr();
        batch.tensors = &tensor;
        fill(&mut batch);
        // SAFETY: shapes and names are copied; the memory lives for 'a or in self.
        Ok(unsafe { raw::state_add_tensors(self.handle, &batch) }?)
    }

    fn check_size(name: &str, dtype: DType, shape: &[i64], size: usize) -> Result<()> {
        let count = shape.iter().try_fold(1u64, |n, &e| {
            u64::try_from(e).ok().and_then(|e| n.checked_mul(e))
        });
        match count {
            Some(count) if dtype.byte_size(count) == size as u64 => Ok(()),
            _ => {
                let text =
                    format!("tensor {name}: {size} bytes do not fit shape {shape:?} of {dtype}");
                Err(Error::new(StatusCode::InvalidArgument, text))
            }
        }
    }

    /// Adds a whole tensor to be saved. INVALID_ARGUMENT when the shape does not fit, ALREADY_EXISTS for a doubled name.
    pub fn add<T: Element>(&mut self, name: &str, shape: &[i64], data: &'a [T]) -> Result<()> {
        self.add_bytes(name, T::DTYPE, shape, as_bytes(data))
    }

    /// As [`State::add`] for any dtype, from row-major little-endian bytes.
    pub fn add_bytes(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[i64],
        data: &'a [u8],
    ) -> Result<()> {
        Self::check_size(name, dtype, shape, data.len())?;
        let entry = Entry {
            name,
            data: data.as_ptr().cast_mut(),
            size: data.len(),
            dtype,
            shape,
            read_only: true,
        };
        self.add_entry(&entry, |_| ())
    }

    /// Adds a whole tensor that a load fills (it may be saved too).
    pub fn add_mut<T: Element>(
        &mut self,
        name: &str,
        shape: &[i64],
        data: &'a mut [T],
    ) -> Result<()> {
        self.add_bytes_mut(name, T::DTYPE, shape, as_bytes_mut(data))
    }

    /// As [`State::add_mut`] for any dtype.
    pub fn add_bytes_mut(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[i64],
        data: &'a mut [u8],
    ) -> Result<()> {
        Self::check_size(name, dtype, shape, data.len())?;
        let entry = Entry {
            name,
            data: data.as_mut_ptr(),
            size: data.len(),
            dtype,
            shape,
            read_only: false,
        };
        self.add_entry(&entry, |_| ())
    }

    /// Adds a tensor whose memory the state owns; read it back with [`State::tensor_bytes`].
    pub fn add_owned(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[i64],
        data: &[u8],
    ) -> Result<()> {
        Self::check_size(name, dtype, shape, data.len())?;
        let mut owned = own(data);
        let entry = Entry {
            name,
            data: owned.bytes.as_mut_ptr().cast(),
            size: data.len(),
            dtype,
            shape,
            read_only: false,
        };
        self.add_entry(&entry, |_| ())?;
        self.owned.insert(name.to_owned(), owned);
        Ok(())
    }

    /// Adds boxes of a sharded tensor; `data` are the local elements, row-major, whose memory the state owns.
    pub fn add_shard_owned(
        &mut self,
        name: &str,
        dtype: DType,
        shard: &Shard,
        data: &[u8],
    ) -> Result<()> {
        let mut owned = own(data);
        // One box gives the local shape; several lie one after the other in a flat local tensor.
        let flat = [flat_length(dtype, data.len())];
        let local: &[i64] = if let [(_, sizes, 0)] = shard.boxes {
            sizes
        } else {
            &flat
        };
        let entry = Entry {
            name,
            data: owned.bytes.as_mut_ptr().cast(),
            size: data.len(),
            dtype,
            shape: local,
            read_only: false,
        };
        let offsets: Vec<i64> = shard
            .boxes
            .iter()
            .flat_map(|(o, _, _)| o.iter().copied())
            .collect();
        let sizes: Vec<i64> = shard
            .boxes
            .iter()
            .flat_map(|(_, s, _)| s.iter().copied())
            .collect();
        let starts: Vec<i64> = shard.boxes.iter().map(|(_, _, start)| *start).collect();
        let range = [0, shard.boxes.len() as u64];
        let shape_range = [0, shard.global_shape.len() as u64];
        self.add_entry(&entry, |batch| {
            batch.global_shapes = shard.global_shape.as_ptr();
            batch.global_shape_offsets = shape_range.as_ptr();
            batch.box_ranges = range.as_ptr();
            batch.box_offsets = offsets.as_ptr();
            batch.box_sizes = sizes.as_ptr();
            batch.local_offsets = starts.as_ptr();
        })?;
        self.owned.insert(name.to_owned(), owned);
        Ok(())
    }

    /// Adds the part of a tensor that `rank` holds under a layout; memory is owned by the state.
    pub fn add_with_layout(
        &mut self,
        name: &str,
        dtype: DType,
        global_shape: &[i64],
        (layout, rank): (&Layout, i32),
        data: &[u8],
    ) -> Result<()> {
        let boxes = layout.boxes(global_shape, rank)?;
        let borrowed: Vec<_> = boxes.iter().map(|(o, s)| (&o[..], &s[..], 0)).collect();
        self.add_shard_owned(
            name,
            dtype,
            &Shard {
                global_shape,
                boxes: &borrowed,
            },
            data,
        )
    }

    /// Adds a JSON value.
    pub fn add_json(&mut self, name: &str, text: &str) -> Result<()> {
        self.add_object(name, "application/json", text.as_bytes(), Kind::Auto)
    }

    /// Adds a byte object with its content type; the bytes are copied.
    pub fn add_object(
        &mut self,
        name: &str,
        content_type: &str,
        data: &[u8],
        kind: Kind,
    ) -> Result<()> {
        let name_offsets = [0, name.len() as u64];
        let data_offsets = [0, data.len() as u64];
        let type_offsets = [0, content_type.len() as u64];
        let kinds = [kind as i32];
        // SAFETY: a plain struct for which all zero is valid; everything is copied by the call.
        let mut batch: ffi::shw_object_batch = unsafe { std::mem::zeroed() };
        batch.struct_size = size_of::<ffi::shw_object_batch>() as u32;
        batch.count = 1;
        batch.names = name.as_ptr().cast();
        batch.name_offsets = name_offsets.as_ptr();
        batch.data = data.as_ptr().cast();
        batch.data_offsets = data_offsets.as_ptr();
        batch.content_types = content_type.as_ptr().cast();
        batch.content_type_offsets = type_offsets.as_ptr();
        batch.kinds = kinds.as_ptr();
        Ok(unsafe { raw::state_add_objects(self.handle, &batch) }?)
    }

    /// Names of the tensors in order.
    pub fn tensor_names(&self) -> Vec<String> {
        // SAFETY: the handle lives as long as self.
        let count = unsafe { ffi::shw_state_tensor_count(self.handle) };
        (0..count)
            .map(|i| sized_text(|s| unsafe { ffi::shw_state_tensor_name(self.handle, i, s) }))
            .collect()
    }

    /// Names of the objects in order.
    pub fn object_names(&self) -> Vec<String> {
        // SAFETY: the handle lives as long as self.
        let count = unsafe { ffi::shw_state_object_count(self.handle) };
        (0..count)
            .map(|i| sized_text(|s| unsafe { ffi::shw_state_object_name(self.handle, i, s) }))
            .collect()
    }

    /// Bytes of a tensor that the state owns; none for borrowed or unknown ones.
    pub fn tensor_bytes(&self, name: &str) -> Option<&[u8]> {
        let owned = self.owned.get(name)?;
        // SAFETY: the vector has at least `size` bytes.
        Some(unsafe { std::slice::from_raw_parts(owned.bytes.as_ptr().cast(), owned.size) })
    }

    /// (content type, bytes) of an object, as added or as a load left it.
    pub fn object(&self, name: &str) -> Option<(String, Vec<u8>)> {
        let index = self.object_names().iter().position(|n| n == name)? as u64;
        let kind =
            sized_text(|s| unsafe { ffi::shw_state_object_content_type(self.handle, index, s) });
        let mut size = 0;
        // SAFETY: the handle lives as long as self; the bytes are copied at once.
        let bytes = unsafe {
            copy_bytes(
                ffi::shw_state_object_data(self.handle, index, &mut size),
                size,
            )
        };
        Some((kind, bytes))
    }

    pub(crate) fn handle(&self) -> *mut ffi::shw_state {
        self.handle
    }
}

impl Drop for State<'_> {
    fn drop(&mut self) {
        // SAFETY: owned, released once; memory in `owned` goes afterwards.
        unsafe { ffi::shw_state_release(self.handle) }
    }
}

fn own(data: &[u8]) -> Owned {
    let mut bytes = vec![0u64; data.len().div_ceil(8)];
    // SAFETY: the vector has at least as many bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(data.as_ptr(), bytes.as_mut_ptr().cast::<u8>(), data.len())
    };
    Owned {
        bytes,
        size: data.len(),
    }
}

/// Elements in so many bytes.
fn flat_length(dtype: DType, size: usize) -> i64 {
    (size as u64 * 8 / u64::from(dtype.bits).max(1)) as i64
}

fn as_bytes<T: Element>(data: &[T]) -> &[u8] {
    // SAFETY: elements have no padding.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), std::mem::size_of_val(data)) }
}

fn as_bytes_mut<T: Element>(data: &mut [T]) -> &mut [u8] {
    // SAFETY: elements have no padding, and any bit pattern is a value.
    unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), std::mem::size_of_val(data)) }
}
