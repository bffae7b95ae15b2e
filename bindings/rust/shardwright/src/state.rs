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
#[derive(Clone, Copy, Debug)]
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

/// What a tensor is, apart from its memory.
#[derive(Clone, Copy, Debug)]
pub struct TensorSpec<'b> {
    /// Fully qualified name.
    pub name: &'b str,
    /// Nested path as JSON array text; empty = flat.
    pub path: &'b str,
    /// Element type.
    pub dtype: DType,
    /// Extents of the local memory.
    pub shape: &'b [i64],
    /// Strides in elements; empty = row-major.
    pub strides: &'b [i64],
    /// Who holds the entry.
    pub kind: Kind,
    /// Boxes of a larger tensor; none = the tensor is whole.
    pub shard: Option<Shard<'b>>,
}

impl<'b> TensorSpec<'b> {
    /// A whole row-major tensor.
    pub fn whole(name: &'b str, dtype: DType, shape: &'b [i64]) -> TensorSpec<'b> {
        TensorSpec { name, path: "", dtype, shape, strides: &[], kind: Kind::Auto, shard: None }
    }
}

/// Memory of one tensor.
#[derive(Clone, Copy, Debug)]
pub struct RawMemory {
    /// First byte.
    pub data: *mut u8,
    /// Bytes that may be read there (and written unless read_only).
    pub size: usize,
    /// Refuse to load into it.
    pub read_only: bool,
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
        State { handle, owned: HashMap::new(), _borrowed: PhantomData }
    }

    /// Adds memory that the host manages itself.
    ///
    /// # Safety
    /// The memory stays valid, and free of writes by others while a call uses it, as long as the state lives.
    pub unsafe fn add_raw(&mut self, spec: &TensorSpec, memory: RawMemory) -> Result<()> {
        // SAFETY: plain structs for which all zero is valid; arrays live for the call, names and shapes are copied.
        let mut tensor: ffi::shw_tensor = unsafe { std::mem::zeroed() };
        tensor.struct_size = size_of::<ffi::shw_tensor>() as u32;
        tensor.flags = if memory.read_only { ffi::SHW_TENSOR_READ_ONLY as u32 } else { 0 };
        tensor.data = memory.data.cast();
        tensor.byte_size = memory.size as u64;
        tensor.device_type = 1;
        tensor.dtype_code = spec.dtype.code;
        tensor.dtype_bits = spec.dtype.bits;
        tensor.dtype_lanes = 1;
        tensor.ndim = spec.shape.len() as i32;
        tensor.shape = spec.shape.as_ptr();
        tensor.strides = if spec.strides.is_empty() { std::ptr::null() } else { spec.strides.as_ptr() };
        let boxes = spec.shard.as_ref().map(FlatShard::of);
        let mut batch: ffi::shw_tensor_batch = unsafe { std::mem::zeroed() };
        batch.struct_size = size_of::<ffi::shw_tensor_batch>() as u32;
        batch.count = 1;
        let (name_offsets, path_offsets, kinds) =
            ([0, spec.name.len() as u64], [0, spec.path.len() as u64], [spec.kind as i32]);
        batch.names = spec.name.as_ptr().cast();
        batch.name_offsets = name_offsets.as_ptr();
        batch.tensors = &tensor;
        batch.paths = spec.path.as_ptr().cast();
        batch.path_offsets = path_offsets.as_ptr();
        batch.kinds = kinds.as_ptr();
        if let (Some(flat), Some(shard)) = (&boxes, &spec.shard) {
            flat.fill(shard, &mut batch);
        }
        Ok(unsafe { raw::state_add_tensors(self.handle, &batch) }?)
    }

    fn check_size(name: &str, dtype: DType, shape: &[i64], size: usize) -> Result<()> {
        let count = shape.iter().try_fold(1u64, |n, &e| u64::try_from(e).ok().and_then(|e| n.checked_mul(e)));
        match count {
            Some(count) if dtype.byte_size(count) == size as u64 => Ok(()),
            _ => {
                let text = format!("tensor {name}: {size} bytes do not fit shape {shape:?} of {dtype}");
                Err(Error::new(StatusCode::InvalidArgument, text))
            }
        }
    }

    /// Adds a whole tensor to be saved. INVALID_ARGUMENT when the shape does not fit, ALREADY_EXISTS for a doubled name.
    pub fn add<T: Element>(&mut self, name: &str, shape: &[i64], data: &'a [T]) -> Result<()> {
        self.add_bytes(name, T::DTYPE, shape, as_bytes(data))
    }

    /// As [`State::add`] for any dtype, from row-major little-endian bytes.
    pub fn add_bytes(&mut self, name: &str, dtype: DType, shape: &[i64], data: &'a [u8]) -> Result<()> {
        Self::check_size(name, dtype, shape, data.len())?;
        let memory = RawMemory { data: data.as_ptr().cast_mut(), size: data.len(), read_only: true };
        // SAFETY: borrowed for 'a.
        unsafe { self.add_raw(&TensorSpec::whole(name, dtype, shape), memory) }
    }

    /// Adds a whole tensor that a load fills (it may be saved too).
    pub fn add_mut<T: Element>(&mut self, name: &str, shape: &[i64], data: &'a mut [T]) -> Result<()> {
        self.add_bytes_mut(name, T::DTYPE, shape, as_bytes_mut(data))
    }

    /// As [`State::add_mut`] for any dtype.
    pub fn add_bytes_mut(&mut self, name: &str, dtype: DType, shape: &[i64], data: &'a mut [u8]) -> Result<()> {
        Self::check_size(name, dtype, shape, data.len())?;
        let memory = RawMemory { data: data.as_mut_ptr(), size: data.len(), read_only: false };
        // SAFETY: borrowed for 'a, exclusively.
        unsafe { self.add_raw(&TensorSpec::whole(name, dtype, shape), memory) }
    }

    /// Adds a tensor whose memory the state owns; read it back with [`State::tensor_bytes`].
    pub fn add_owned(&mut self, spec: &TensorSpec, data: &[u8]) -> Result<()> {
        let mut owned = own(data);
        let memory = RawMemory { data: owned.bytes.as_mut_ptr().cast(), size: data.len(), read_only: false };
        // SAFETY: the heap block stays where it is and lives in self.
        unsafe { self.add_raw(spec, memory) }?;
        self.owned.insert(spec.name.to_owned(), owned);
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
        let shape = boxes.first().map_or(&[0][..], |(_, sizes)| sizes);
        let shard = Shard { global_shape, boxes: &borrowed };
        self.add_owned(&TensorSpec { shard: Some(shard), ..TensorSpec::whole(name, dtype, shape) }, data)
    }

    /// Adds a JSON value.
    pub fn add_json(&mut self, name: &str, text: &str) -> Result<()> {
        self.add_object(name, ("application/json", text.as_bytes()), "", Kind::Auto)
    }

    /// Adds a byte object, (content type, bytes), which are copied. `path`: nested path, empty = flat.
    pub fn add_object(
        &mut self,
        name: &str,
        (content_type, data): (&str, &[u8]),
        path: &str,
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
        let path_offsets = [0, path.len() as u64];
        batch.paths = path.as_ptr().cast();
        batch.path_offsets = path_offsets.as_ptr();
        batch.kinds = kinds.as_ptr();
        Ok(unsafe { raw::state_add_objects(self.handle, &batch) }?)
    }

    /// Names of the tensors in order.
    pub fn tensor_names(&self) -> Vec<String> {
        // SAFETY: the handle lives as long as self.
        let count = unsafe { ffi::shw_state_tensor_count(self.handle) };
        (0..count).map(|i| sized_text(|s| unsafe { ffi::shw_state_tensor_name(self.handle, i, s) })).collect()
    }

    /// Names of the objects in order.
    pub fn object_names(&self) -> Vec<String> {
        // SAFETY: the handle lives as long as self.
        let count = unsafe { ffi::shw_state_object_count(self.handle) };
        (0..count).map(|i| sized_text(|s| unsafe { ffi::shw_state_object_name(self.handle, i, s) })).collect()
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
        let kind = sized_text(|s| unsafe { ffi::shw_state_object_content_type(self.handle, index, s) });
        let mut size = 0;
        // SAFETY: the handle lives as long as self; the bytes are copied at once.
        let bytes = unsafe { copy_bytes(ffi::shw_state_object_data(self.handle, index, &mut size), size) };
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
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), bytes.as_mut_ptr().cast::<u8>(), data.len()) };
    Owned { bytes, size: data.len() }
}

/// The boxes of a shard as flat arrays.
struct FlatShard {
    offsets: Vec<i64>,
    sizes: Vec<i64>,
    starts: Vec<i64>,
    box_range: [u64; 2],
    shape_range: [u64; 2],
}

impl FlatShard {
    fn of(shard: &Shard) -> FlatShard {
        FlatShard {
            offsets: shard.boxes.iter().flat_map(|(o, _, _)| o.iter().copied()).collect(),
            sizes: shard.boxes.iter().flat_map(|(_, s, _)| s.iter().copied()).collect(),
            starts: shard.boxes.iter().map(|(_, _, start)| *start).collect(),
            box_range: [0, shard.boxes.len() as u64],
            shape_range: [0, shard.global_shape.len() as u64],
        }
    }

    /// Points the batch to the arrays; self and shard must outlive its use.
    fn fill(&self, shard: &Shard, batch: &mut ffi::shw_tensor_batch) {
        batch.global_shapes = shard.global_shape.as_ptr();
        batch.global_shape_offsets = self.shape_range.as_ptr();
        batch.box_ranges = self.box_range.as_ptr();
        batch.box_offsets = self.offsets.as_ptr();
        batch.box_sizes = self.sizes.as_ptr();
        batch.local_offsets = self.starts.as_ptr();
    }
}

fn as_bytes<T: Element>(data: &[T]) -> &[u8] {
    // SAFETY: elements have no padding.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), std::mem::size_of_val(data)) }
}

fn as_bytes_mut<T: Element>(data: &mut [T]) -> &mut [u8] {
    // SAFETY: elements have no padding, and any bit pattern is a value.
    unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), std::mem::size_of_val(data)) }
}
