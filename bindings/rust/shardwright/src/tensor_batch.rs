// SPDX-License-Identifier: Apache-2.0
//! Tensors on their way into a state: flat columns, so that many cost one call of the library.

use crate::dtype::{DType, Element, first_no_bool};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Layout;
use crate::memory::{Owned, as_bytes, as_bytes_mut};
use crate::options::Kind;
use crate::text::Blob;
use shardwright_sys::ffi;
use std::marker::PhantomData;

/// Boxes of a sharded tensor that this rank holds.
#[derive(Clone, Copy, Debug)]
pub struct Shard<'a> {
    /// Shape of the whole tensor.
    pub global_shape: &'a [i64],
    /// Offsets and sizes of each box, and the element of the local data where it starts.
    pub boxes: &'a [(&'a [i64], &'a [i64], i64)],
}

/// Which part of a grid a tensor is, as Megatron Core describes shards. Values beyond the extents of the local shape come
/// first and are axes that it lacks and has extent 1 on.
#[derive(Clone, Copy, Debug)]
pub struct Grid<'a> {
    /// Into how many equal parts each axis of the whole tensor is cut.
    pub fragments: &'a [i64],
    /// The part, on each axis.
    pub index: &'a [i64],
}

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
    /// Strides in elements, one per extent; empty = row-major.
    pub strides: &'b [i64],
    /// Who holds the entry.
    pub kind: Kind,
    /// Boxes of a larger tensor; none = the tensor is whole, or part of a grid.
    pub shard: Option<Shard<'b>>,
    /// Part of a grid. A batch has tensors of grids or tensors with a shard or a layout.
    pub grid: Option<Grid<'b>>,
    /// Without a grid: into how many equal parts each axis of the whole tensor is cut (0 = no regular cut) before boxes are
    /// cut of a part once more, as flat ranges are. Mappings that split each part ask for it. Empty = not said.
    pub fragments: &'b [i64],
    /// Another rank saves it; loads fill it.
    pub replica: bool,
}

impl<'b> TensorSpec<'b> {
    /// A whole row-major tensor.
    pub fn whole(name: &'b str, dtype: DType, shape: &'b [i64]) -> TensorSpec<'b> {
        TensorSpec {
            name,
            path: "",
            dtype,
            shape,
            strides: &[],
            kind: Kind::Auto,
            shard: None,
            grid: None,
            fragments: &[],
            replica: false,
        }
    }

    /// Bytes that a row-major tensor fills; the library checks those that a strided one lies in.
    fn check_size(&self, size: usize) -> Result<()> {
        if !self.strides.is_empty() {
            return Ok(());
        }
        let count = self.shape.iter().try_fold(1u64, |n, &e| u64::try_from(e).ok().and_then(|e| n.checked_mul(e)));
        match count {
            Some(count) if self.dtype.byte_size(count) == size as u64 => Ok(()),
            _ => Err(invalid(self.name, format!("{size} bytes do not fit shape {:?} of {}", self.shape, self.dtype))),
        }
    }

    /// The library takes arrays without their lengths, and no size as a size that fits: both are checked here.
    fn check(&self, memory: &RawMemory) -> Result<()> {
        if memory.size == 0 && !self.shape.contains(&0) {
            return Err(invalid(self.name, format!("no memory for shape {:?}", self.shape)));
        }
        let rank = self.shape.len();
        if !self.strides.is_empty() && self.strides.len() != rank {
            return Err(invalid(self.name, format!("{} strides for a shape of {rank} extents", self.strides.len())));
        }
        let whole = self.shard.as_ref().map_or(rank, |shard| shard.global_shape.len());
        if !self.fragments.is_empty() && (self.fragments.len() != whole || self.grid.is_some()) {
            let text = format!("{} fragments beside a grid, or for {whole} extents", self.fragments.len());
            return Err(invalid(self.name, text));
        }
        if let Some(grid) = &self.grid {
            let (fragments, index) = (grid.fragments.len(), grid.index.len());
            if fragments != index || fragments < rank {
                let text = format!("{fragments} fragments and {index} indices for a shape of {rank} extents");
                return Err(invalid(self.name, text));
            }
        }
        let Some(shard) = &self.shard else { return Ok(()) };
        let rank = shard.global_shape.len();
        for (i, (offsets, sizes, _)) in shard.boxes.iter().enumerate() {
            if offsets.len() != rank || sizes.len() != rank {
                let text = format!(
                    "box {i} has {} offsets and {} sizes, the global shape {rank} extents",
                    offsets.len(),
                    sizes.len()
                );
                return Err(invalid(self.name, text));
            }
        }
        Ok(())
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

/// Memory of Rust bools that loads write to: what is no bool there must not be seen as one.
pub(crate) struct Bools {
    name: String,
    data: *mut u8,
    size: usize,
}

impl Bools {
    /// Makes bools of all bytes; DATA_LOSS when one was none.
    ///
    /// # Safety
    /// The memory is there, and nobody else uses it during the call.
    pub(crate) unsafe fn restore(&self) -> Result<()> {
        // SAFETY: as the caller says.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.data, self.size) };
        let Some((at, byte)) = first_no_bool(bytes) else { return Ok(()) };
        bytes.iter_mut().for_each(|each| *each = u8::from(*each != 0));
        let text =
            format!("tensor {}: element {at} of its memory was loaded as the byte {byte}, which is no bool", self.name);
        Err(Error::new(ErrorKind::DataLoss, text).with_detail("tensor", &self.name))
    }
}

/// Tensors that enter a state together, by [`State::add_batch`](crate::State::add_batch): all or none, in one call of the
/// library however many they are. Memory is borrowed for `'a`. Thread-compatible.
///
/// ```
/// use shardwright::{State, TensorBatch};
///
/// let (weight, bias) = (vec![1.0f32; 6], vec![0.5f64; 2]);
/// let mut batch = TensorBatch::new();
/// batch.add("model.weight", &[2, 3], &weight)?;
/// batch.add("model.bias", &[2], &bias)?;
/// let mut state = State::new();
/// state.add_batch(batch)?;
/// assert_eq!(state.tensor_names(), ["model.weight", "model.bias"]);
/// # Ok::<(), shardwright::Error>(())
/// ```
pub struct TensorBatch<'a> {
    names: Blob,
    paths: Blob,
    kinds: Vec<i32>,
    tensors: Vec<ffi::shw_tensor>, // without shape and strides, which move while they grow
    strided: Vec<bool>,
    shapes: Vec<i64>,
    strides: Vec<i64>, // as many as extents; of any value where the tensor is row-major
    boxes: Boxes,
    grids: Grids,
    replica_ids: Vec<i32>,
    layouts: Layouts,
    pub(crate) owned: Vec<(String, Owned)>,
    pub(crate) bools: Vec<Bools>,
    _borrowed: PhantomData<&'a mut [u8]>,
}

// SAFETY: nothing in a batch is tied to a thread.
unsafe impl Send for TensorBatch<'_> {}

impl std::fmt::Debug for TensorBatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("TensorBatch").field("tensors", &self.tensors.len()).finish_non_exhaustive()
    }
}

impl Default for TensorBatch<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> TensorBatch<'a> {
    /// An empty batch.
    pub fn new() -> TensorBatch<'a> {
        TensorBatch {
            names: Blob::of::<&str>([]),
            paths: Blob::of::<&str>([]),
            kinds: Vec::new(),
            tensors: Vec::new(),
            strided: Vec::new(),
            shapes: Vec::new(),
            strides: Vec::new(),
            boxes: Boxes::new(),
            grids: Grids::new(),
            replica_ids: Vec::new(),
            layouts: Layouts::default(),
            owned: Vec::new(),
            bools: Vec::new(),
            _borrowed: PhantomData,
        }
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// True without tensors.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Adds memory that the host manages itself. INVALID_ARGUMENT for strides or boxes of the wrong length, and
    /// for no memory at all.
    ///
    /// # Safety
    /// The memory stays valid, and free of writes by others while a call uses it, as long as the state lives that the
    /// batch is added to.
    pub unsafe fn add_raw(&mut self, spec: &TensorSpec, memory: RawMemory) -> Result<()> {
        self.push(spec, memory, HOST)
    }

    pub(crate) fn push(&mut self, spec: &TensorSpec, memory: RawMemory, device: (i32, i32)) -> Result<()> {
        spec.check(&memory)?;
        self.names.push(spec.name);
        self.paths.push(spec.path);
        self.kinds.push(spec.kind as i32);
        self.tensors.push(described(spec, memory, device));
        self.strided.push(!spec.strides.is_empty());
        self.shapes.extend_from_slice(spec.shape);
        self.strides.extend_from_slice(spec.strides);
        self.strides.resize(self.shapes.len(), 0);
        self.boxes.push(spec);
        self.grids.push(spec);
        self.replica_ids.push(i32::from(spec.replica));
        self.layouts.indices.push(0);
        Ok(())
    }

    /// Adds a whole tensor to be saved. INVALID_ARGUMENT when the shape does not fit.
    pub fn add<T: Element>(&mut self, name: &str, shape: &[i64], data: &'a [T]) -> Result<()> {
        self.add_bytes(name, T::DTYPE, shape, as_bytes(data))
    }

    /// As [`TensorBatch::add`] for any dtype, from row-major little-endian bytes.
    pub fn add_bytes(&mut self, name: &str, dtype: DType, shape: &[i64], data: &'a [u8]) -> Result<()> {
        self.add_spec(&TensorSpec::whole(name, dtype, shape), data)
    }

    /// Adds a whole tensor that a load fills (it may be saved too).
    pub fn add_mut<T: Element>(&mut self, name: &str, shape: &[i64], data: &'a mut [T]) -> Result<()> {
        self.add_elements_mut(&TensorSpec::whole(name, T::DTYPE, shape), data)
    }

    /// Adds the boxes of a larger tensor that lie in this memory, to be saved; `shape` is that of the memory.
    pub fn add_shard<T: Element>(&mut self, name: &str, shape: &[i64], shard: Shard, data: &'a [T]) -> Result<()> {
        self.add_spec(&TensorSpec { shard: Some(shard), ..TensorSpec::whole(name, T::DTYPE, shape) }, as_bytes(data))
    }

    /// As [`TensorBatch::add_shard`], to be filled by a load (it may be saved too).
    pub fn add_shard_mut<T: Element>(
        &mut self,
        name: &str,
        shape: &[i64],
        shard: Shard,
        data: &'a mut [T],
    ) -> Result<()> {
        self.add_elements_mut(&TensorSpec { shard: Some(shard), ..TensorSpec::whole(name, T::DTYPE, shape) }, data)
    }

    /// Adds one part of a grid, to be saved; `shape` is that of the part.
    pub fn add_grid_part<T: Element>(&mut self, name: &str, shape: &[i64], grid: Grid, data: &'a [T]) -> Result<()> {
        self.add_spec(&TensorSpec { grid: Some(grid), ..TensorSpec::whole(name, T::DTYPE, shape) }, as_bytes(data))
    }

    /// As [`TensorBatch::add_grid_part`], to be filled by a load (it may be saved too).
    pub fn add_grid_part_mut<T: Element>(
        &mut self,
        name: &str,
        shape: &[i64],
        grid: Grid,
        data: &'a mut [T],
    ) -> Result<()> {
        self.add_elements_mut(&TensorSpec { grid: Some(grid), ..TensorSpec::whole(name, T::DTYPE, shape) }, data)
    }

    /// Adds a tensor as `spec` describes it, whole or a shard, in borrowed bytes, to be saved. INVALID_ARGUMENT when they do
    /// not fit: a row-major tensor fills them, a strided one lies inside them.
    pub fn add_spec(&mut self, spec: &TensorSpec, data: &'a [u8]) -> Result<()> {
        spec.check_size(data.len())?;
        let memory = RawMemory { data: data.as_ptr().cast_mut(), size: data.len(), read_only: true };
        // SAFETY: borrowed for 'a.
        unsafe { self.add_raw(spec, memory) }
    }

    /// As [`TensorBatch::add_spec`], to be filled by a load (it may be saved too).
    pub fn add_spec_mut(&mut self, spec: &TensorSpec, data: &'a mut [u8]) -> Result<()> {
        spec.check_size(data.len())?;
        let memory = RawMemory { data: data.as_mut_ptr(), size: data.len(), read_only: false };
        // SAFETY: borrowed for 'a, exclusively.
        unsafe { self.add_raw(spec, memory) }
    }

    fn add_elements_mut<T: Element>(&mut self, spec: &TensorSpec, data: &'a mut [T]) -> Result<()> {
        let bytes = as_bytes_mut(data);
        let (data, size) = (bytes.as_mut_ptr(), bytes.len());
        self.add_spec_mut(spec, bytes)?;
        if !T::ANY_BITS {
            self.bools.push(Bools { name: spec.name.to_owned(), data, size });
        }
        Ok(())
    }

    /// As [`TensorBatch::add_mut`] for any dtype.
    pub fn add_bytes_mut(&mut self, name: &str, dtype: DType, shape: &[i64], data: &'a mut [u8]) -> Result<()> {
        self.add_spec_mut(&TensorSpec::whole(name, dtype, shape), data)
    }

    /// Adds a copy of the data, which the state owns; read it back with
    /// [`State::tensor_bytes`](crate::State::tensor_bytes).
    pub fn add_owned(&mut self, spec: &TensorSpec, data: &[u8]) -> Result<()> {
        let mut owned = Owned::copy_of(data);
        let memory = RawMemory { data: owned.as_mut_ptr(), size: data.len(), read_only: false };
        // SAFETY: the heap block stays where it is and goes with the batch into the state.
        unsafe { self.add_raw(spec, memory) }?;
        self.owned.push((spec.name.to_owned(), owned));
        Ok(())
    }

    /// Adds the part of a tensor that a rank holds under a layout, `held`, to be saved: row-major, of
    /// [`Layout::local_shape`]. The state keeps the layout, by which saves are planned.
    pub fn add_laid_out<T: Element>(
        &mut self,
        name: &str,
        global_shape: &[i64],
        held: (&Layout, i32),
        data: &'a [T],
    ) -> Result<()> {
        self.laid_out((name, T::DTYPE, global_shape), held, |batch, spec| batch.add_spec(spec, as_bytes(data)))
    }

    /// As [`TensorBatch::add_laid_out`], to be filled by a load (it may be saved too).
    pub fn add_laid_out_mut<T: Element>(
        &mut self,
        name: &str,
        global_shape: &[i64],
        held: (&Layout, i32),
        data: &'a mut [T],
    ) -> Result<()> {
        self.laid_out((name, T::DTYPE, global_shape), held, |batch, spec| batch.add_elements_mut(spec, data))
    }

    /// As [`TensorBatch::add_laid_out`] for any dtype, with a copy of the bytes that the state owns.
    pub fn add_owned_laid_out(
        &mut self,
        name: &str,
        dtype: DType,
        global_shape: &[i64],
        held: (&Layout, i32),
        data: &[u8],
    ) -> Result<()> {
        self.laid_out((name, dtype, global_shape), held, |batch, spec| batch.add_owned(spec, data))
    }

    pub(crate) fn laid_out(
        &mut self,
        (name, dtype, global_shape): (&str, DType, &[i64]),
        (layout, rank): (&Layout, i32),
        add: impl FnOnce(&mut Self, &TensorSpec) -> Result<()>,
    ) -> Result<()> {
        let pieces = layout.pieces(global_shape, rank)?;
        let shape = layout.local_shape(global_shape, rank)?;
        let placed: Vec<_> = pieces.iter().map(|p| (&p.offsets[..], &p.sizes[..], p.local_offset)).collect();
        let shard = Shard { global_shape, boxes: &placed };
        // Also where a rank holds all of it: the kind must be the same on every rank of the layout.
        let kind = Kind::Sharded;
        add(self, &TensorSpec { shard: Some(shard), kind, ..TensorSpec::whole(name, dtype, &shape) })?;
        self.layouts.set_last(layout, rank);
        Ok(())
    }

    /// Calls with the columns as the library reads them.
    pub(crate) fn with_columns<R>(&mut self, call: impl FnOnce(&ffi::shw_tensor_batch) -> R) -> R {
        self.place_shapes();
        // SAFETY: a plain struct for which all zero is valid.
        let mut batch: ffi::shw_tensor_batch = unsafe { std::mem::zeroed() };
        batch.struct_size = size_of::<ffi::shw_tensor_batch>() as u32;
        batch.count = self.tensors.len() as u64;
        batch.names = self.names.bytes.as_ptr().cast();
        batch.name_offsets = self.names.offsets.as_ptr();
        batch.tensors = self.tensors.as_ptr();
        batch.paths = self.paths.bytes.as_ptr().cast();
        batch.path_offsets = self.paths.offsets.as_ptr();
        batch.kinds = self.kinds.as_ptr();
        batch.replica_ids = self.replica_ids.as_ptr();
        self.boxes.place(&mut batch);
        self.grids.place(&mut batch);
        let handles = self.layouts.handles();
        self.layouts.place(&handles, &mut batch);
        call(&batch)
    }

    fn place_shapes(&mut self) {
        let mut at = 0;
        for (tensor, strided) in self.tensors.iter_mut().zip(&self.strided) {
            let end = at + tensor.ndim as usize;
            tensor.shape = self.shapes[at..end].as_ptr();
            tensor.strides = if *strided { self.strides[at..end].as_ptr() } else { std::ptr::null() };
            at = end;
        }
    }
}

/// Boxes of all tensors back to back. A whole tensor among sharded ones is one box of its own shape.
struct Boxes {
    any_shard: bool,
    global_shapes: Vec<i64>,
    global_shape_offsets: Vec<u64>,
    ranges: Vec<u64>,
    offsets: Vec<i64>,
    sizes: Vec<i64>,
    starts: Vec<i64>,
}

impl Boxes {
    fn new() -> Boxes {
        Boxes {
            any_shard: false,
            global_shapes: Vec::new(),
            global_shape_offsets: vec![0],
            ranges: vec![0],
            offsets: Vec::new(),
            sizes: Vec::new(),
            starts: Vec::new(),
        }
    }

    fn push(&mut self, spec: &TensorSpec) {
        match &spec.shard {
            Some(shard) => self.push_shard(shard),
            None => self.push_whole(spec.shape),
        }
        self.global_shape_offsets.push(self.global_shapes.len() as u64);
        self.ranges.push(self.starts.len() as u64);
    }

    fn push_shard(&mut self, shard: &Shard) {
        self.any_shard = true;
        self.global_shapes.extend_from_slice(shard.global_shape);
        for (offsets, sizes, start) in shard.boxes {
            self.offsets.extend_from_slice(offsets);
            self.sizes.extend_from_slice(sizes);
            self.starts.push(*start);
        }
    }

    fn push_whole(&mut self, shape: &[i64]) {
        self.global_shapes.extend_from_slice(shape);
        self.offsets.resize(self.offsets.len() + shape.len(), 0);
        self.sizes.extend_from_slice(shape);
        self.starts.push(0);
    }

    /// Points the batch to the columns; self must outlive its use.
    fn place(&self, batch: &mut ffi::shw_tensor_batch) {
        if !self.any_shard {
            return;
        }
        batch.global_shapes = self.global_shapes.as_ptr();
        batch.global_shape_offsets = self.global_shape_offsets.as_ptr();
        batch.box_ranges = self.ranges.as_ptr();
        batch.box_offsets = self.offsets.as_ptr();
        batch.box_sizes = self.sizes.as_ptr();
        batch.local_offsets = self.starts.as_ptr();
    }
}

/// Grids, or fragments alone, of all tensors back to back; none for a tensor without.
struct Grids {
    any_part: bool,
    fragments: Vec<i64>,
    indices: Vec<i64>,
    offsets: Vec<u64>,
}

impl Grids {
    fn new() -> Grids {
        Grids { any_part: false, fragments: Vec::new(), indices: Vec::new(), offsets: vec![0] }
    }

    fn push(&mut self, spec: &TensorSpec) {
        if let Some(grid) = &spec.grid {
            self.fragments.extend_from_slice(grid.fragments);
            self.indices.extend_from_slice(grid.index);
            self.any_part = true;
        }
        self.fragments.extend_from_slice(spec.fragments);
        self.indices.resize(self.fragments.len(), -1); // beside grids, where it may not be, it is refused
        self.offsets.push(self.fragments.len() as u64);
    }

    /// Points the batch to the columns; self must outlive its use.
    fn place(&self, batch: &mut ffi::shw_tensor_batch) {
        if self.fragments.is_empty() {
            return;
        }
        batch.grid_fragments = self.fragments.as_ptr();
        batch.grid_indices = if self.any_part { self.indices.as_ptr() } else { std::ptr::null() };
        batch.grid_offsets = self.offsets.as_ptr();
    }
}

/// Layouts beside the boxes of tensors. The library takes those of one rank per batch.
#[derive(Default)]
struct Layouts {
    distinct: Vec<Layout>,
    indices: Vec<u32>, // per tensor: 0 = none, else 1 + its number
    rank: i32,
}

impl Layouts {
    /// Of the tensor that was added last. Those of another rank than the first are left out: its boxes say all.
    fn set_last(&mut self, layout: &Layout, rank: i32) {
        if self.distinct.is_empty() {
            self.rank = rank;
        }
        let Some(last) = self.indices.last_mut() else { return };
        if self.rank != rank {
            return;
        }
        let found = self.distinct.iter().rposition(|known| known.handle() == layout.handle());
        let number = found.unwrap_or(self.distinct.len());
        if found.is_none() {
            self.distinct.push(layout.clone());
        }
        *last = number as u32 + 1;
    }

    fn handles(&self) -> Vec<*const ffi::shw_layout> {
        self.distinct.iter().map(Layout::handle).collect()
    }

    /// Points the batch to the columns; self and handles must outlive its use.
    fn place(&self, handles: &[*const ffi::shw_layout], batch: &mut ffi::shw_tensor_batch) {
        if handles.is_empty() {
            return;
        }
        batch.layouts = handles.as_ptr();
        batch.layout_indices = self.indices.as_ptr();
        batch.layout_count = handles.len() as u64;
        batch.rank = self.rank;
    }
}

/// DLPack's numbers of memory of the host.
const HOST: (i32, i32) = (ffi::SHW_DEVICE_CPU, 0);

fn described(spec: &TensorSpec, memory: RawMemory, device: (i32, i32)) -> ffi::shw_tensor {
    // SAFETY: a plain struct for which all zero is valid.
    let mut tensor: ffi::shw_tensor = unsafe { std::mem::zeroed() };
    tensor.struct_size = size_of::<ffi::shw_tensor>() as u32;
    tensor.flags = if memory.read_only { ffi::SHW_TENSOR_READ_ONLY as u32 } else { 0 };
    tensor.data = memory.data.cast();
    tensor.byte_size = memory.size as u64;
    (tensor.device_type, tensor.device_id) = device;
    tensor.dtype = spec.dtype.0;
    tensor.ndim = spec.shape.len() as i32;
    tensor
}

pub(crate) fn invalid(tensor: &str, what: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("tensor {tensor}: {what}")).with_detail("tensor", tensor)
}
