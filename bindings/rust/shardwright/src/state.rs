// SPDX-License-Identifier: Apache-2.0
//! States: the tensors and byte objects that one rank saves, or wants filled.

use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::layout::Layout;
use crate::options::Kind;
use crate::tensor_batch::{Owned, RawMemory, TensorBatch, TensorSpec};
use crate::text::{copy_bytes, sized_text};
use shardwright_sys::{ffi, raw};
use std::collections::HashMap;
use std::marker::PhantomData;

/// Ordered entries of one rank. Memory is borrowed for `'a`; `State<'static>` owns or shares everything that it holds and
/// may go into jobs. A name has at most 65,535 bytes of UTF-8. Thread-compatible.
pub struct State<'a> {
    handle: *mut ffi::shw_state,
    owned: HashMap<String, Owned>,
    _borrowed: PhantomData<&'a mut [u8]>,
}

// SAFETY: nothing in a state is tied to a thread; non-const calls need &mut.
unsafe impl Send for State<'_> {}
// SAFETY: const calls may run together.
unsafe impl Sync for State<'_> {}

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

    /// Adds all tensors of a batch or none, in one call of the library. ALREADY_EXISTS for a doubled name,
    /// INVALID_ARGUMENT, OUT_OF_RANGE for a box that leaves its tensor.
    pub fn add_batch(&mut self, mut batch: TensorBatch<'a>) -> Result<()> {
        // SAFETY: the columns live for the call, which copies all but the memory; that is borrowed for 'a or owned.
        batch.with_columns(|columns| unsafe { raw::state_add_tensors(self.handle, columns) })?;
        self.owned.extend(std::mem::take(&mut batch.owned));
        Ok(())
    }

    /// Adds whole tensors to be saved, as (name, shape, elements), all or none, in one call of the library. For tensors
    /// of several types see [`TensorBatch`].
    ///
    /// ```
    /// use shardwright::State;
    /// use std::collections::BTreeMap;
    ///
    /// let weights = BTreeMap::from([("a", vec![1.0f32; 4]), ("b", vec![2.0; 2])]);
    /// let mut state = State::new();
    /// state.add_all(weights.iter().map(|(name, data)| (name, [data.len() as i64], &data[..])))?;
    /// assert_eq!(state.tensor_names(), ["a", "b"]);
    /// # Ok::<(), shardwright::Error>(())
    /// ```
    pub fn add_all<N, S, T>(&mut self, tensors: impl IntoIterator<Item = (N, S, &'a [T])>) -> Result<()>
    where
        N: AsRef<str>,
        S: AsRef<[i64]>,
        T: Element,
    {
        let mut batch = TensorBatch::new();
        for (name, shape, data) in tensors {
            batch.add(name.as_ref(), shape.as_ref(), data)?;
        }
        self.add_batch(batch)
    }

    /// Adds what one call on a batch describes.
    fn add_one(&mut self, describe: impl FnOnce(&mut TensorBatch<'a>) -> Result<()>) -> Result<()> {
        let mut batch = TensorBatch::new();
        describe(&mut batch)?;
        self.add_batch(batch)
    }

    /// Adds memory that the host manages itself. INVALID_ARGUMENT for strides or boxes of the wrong length, and for no
    /// memory at all.
    ///
    /// # Safety
    /// The memory stays valid, and free of writes by others while a call uses it, as long as the state lives.
    pub unsafe fn add_raw(&mut self, spec: &TensorSpec, memory: RawMemory) -> Result<()> {
        // SAFETY: what the caller promises.
        self.add_one(|batch| unsafe { batch.add_raw(spec, memory) })
    }

    /// Adds a whole tensor to be saved. INVALID_ARGUMENT when the shape does not fit, ALREADY_EXISTS for a doubled name.
    pub fn add<T: Element>(&mut self, name: &str, shape: &[i64], data: &'a [T]) -> Result<()> {
        self.add_one(|batch| batch.add(name, shape, data))
    }

    /// As [`State::add`] for any dtype, from row-major little-endian bytes.
    pub fn add_bytes(&mut self, name: &str, dtype: DType, shape: &[i64], data: &'a [u8]) -> Result<()> {
        self.add_one(|batch| batch.add_bytes(name, dtype, shape, data))
    }

    /// Adds a whole tensor that a load fills (it may be saved too).
    pub fn add_mut<T: Element>(&mut self, name: &str, shape: &[i64], data: &'a mut [T]) -> Result<()> {
        self.add_one(|batch| batch.add_mut(name, shape, data))
    }

    /// As [`State::add_mut`] for any dtype.
    pub fn add_bytes_mut(&mut self, name: &str, dtype: DType, shape: &[i64], data: &'a mut [u8]) -> Result<()> {
        self.add_one(|batch| batch.add_bytes_mut(name, dtype, shape, data))
    }

    /// Adds a copy of the data, which the state owns; read it back with [`State::tensor_bytes`].
    pub fn add_owned(&mut self, spec: &TensorSpec, data: &[u8]) -> Result<()> {
        self.add_one(|batch| batch.add_owned(spec, data))
    }

    /// Adds a copy of the part of a tensor that `rank` holds under a layout: row-major, of [`Layout::local_shape`].
    pub fn add_with_layout(
        &mut self,
        name: &str,
        dtype: DType,
        global_shape: &[i64],
        held: (&Layout, i32),
        data: &[u8],
    ) -> Result<()> {
        self.add_one(|batch| batch.add_with_layout(name, dtype, global_shape, held, data))
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
        Some(self.owned.get(name)?.bytes())
    }

    /// (content type, bytes) of an object, as added or as a load left it.
    pub fn object(&self, name: &str) -> Option<(String, Vec<u8>)> {
        // SAFETY: the handle lives as long as self.
        let index = unsafe { raw::state_find_object(self.handle, name.as_bytes()) }.ok()?;
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

impl std::fmt::Debug for State<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("State").field("tensors", &self.tensor_names()).field("objects", &self.object_names()).finish()
    }
}

impl Drop for State<'_> {
    fn drop(&mut self) {
        // SAFETY: owned, released once; memory in `owned` goes afterwards.
        unsafe { ffi::shw_state_release(self.handle) }
    }
}
