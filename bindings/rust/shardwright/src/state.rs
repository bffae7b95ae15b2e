// SPDX-License-Identifier: Apache-2.0
//! States: the tensors and byte objects that one rank saves, or wants filled.

use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::layout::Layout;
use crate::mapping::Mapping;
use crate::memory::Owned;
use crate::object_batch::{ObjectBatch, ObjectSpec};
use crate::options::Kind;
use crate::report::Report;
use crate::tensor_batch::{Bools, RawMemory, Shard, TensorBatch, TensorSpec};
use crate::text::{copy_bytes, sized_text};
use shardwright_sys::{ffi, raw};
use std::collections::HashMap;
use std::marker::PhantomData;

/// Ordered entries of one rank. Memory is borrowed for `'a`; `State<'static>` owns or shares everything that it holds and
/// may go into jobs. A name has at most 65,535 bytes of UTF-8. Thread-compatible.
pub struct State<'a> {
    handle: *mut ffi::shw_state,
    owned: HashMap<String, Owned>,
    bools: Vec<Bools>,
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
        State { handle, owned: HashMap::new(), bools: Vec::new(), _borrowed: PhantomData }
    }

    /// Adds all tensors of a batch or none, in one call of the library. ALREADY_EXISTS for a doubled name,
    /// INVALID_ARGUMENT, OUT_OF_RANGE for a box that leaves its tensor.
    pub fn add_batch(&mut self, mut batch: TensorBatch<'a>) -> Result<()> {
        // SAFETY: the columns live for the call, which copies all but the memory; that is borrowed for 'a or owned.
        batch.with_columns(|columns| unsafe { raw::state_add_tensors(self.handle, columns) })?;
        self.owned.extend(std::mem::take(&mut batch.owned));
        self.bools.append(&mut batch.bools);
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
    pub(crate) fn add_one(&mut self, describe: impl FnOnce(&mut TensorBatch<'a>) -> Result<()>) -> Result<()> {
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

    /// Adds boxes of a larger tensor that lie in this memory, to be saved; `shape` is that of the memory.
    ///
    /// ```
    /// use shardwright::{Shard, State};
    ///
    /// let rows = [3.0f32, 4.0, 5.0, 6.0]; // rows 1 and 2 of a tensor of 4 x 2
    /// let boxes = [(&[1i64, 0][..], &[2i64, 2][..], 0)];
    /// let mut state = State::new();
    /// state.add_shard("model.weight", &[2, 2], Shard { global_shape: &[4, 2], boxes: &boxes }, &rows)?;
    /// # Ok::<(), shardwright::Error>(())
    /// ```
    pub fn add_shard<T: Element>(&mut self, name: &str, shape: &[i64], shard: Shard, data: &'a [T]) -> Result<()> {
        self.add_one(|batch| batch.add_shard(name, shape, shard, data))
    }

    /// As [`State::add_shard`], to be filled by a load (it may be saved too).
    pub fn add_shard_mut<T: Element>(
        &mut self,
        name: &str,
        shape: &[i64],
        shard: Shard,
        data: &'a mut [T],
    ) -> Result<()> {
        self.add_one(|batch| batch.add_shard_mut(name, shape, shard, data))
    }

    /// Adds a tensor as `spec` describes it, whole or a shard, in borrowed bytes, to be saved. INVALID_ARGUMENT when they do
    /// not fit.
    pub fn add_spec(&mut self, spec: &TensorSpec, data: &'a [u8]) -> Result<()> {
        self.add_one(|batch| batch.add_spec(spec, data))
    }

    /// As [`State::add_spec`], to be filled by a load (it may be saved too).
    pub fn add_spec_mut(&mut self, spec: &TensorSpec, data: &'a mut [u8]) -> Result<()> {
        self.add_one(|batch| batch.add_spec_mut(spec, data))
    }

    /// Adds the part of a tensor that a rank holds under a layout, `held`, to be saved: row-major, of
    /// [`Layout::local_shape`].
    pub fn add_laid_out<T: Element>(
        &mut self,
        name: &str,
        global_shape: &[i64],
        held: (&Layout, i32),
        data: &'a [T],
    ) -> Result<()> {
        self.add_one(|batch| batch.add_laid_out(name, global_shape, held, data))
    }

    /// As [`State::add_laid_out`], to be filled by a load (it may be saved too).
    pub fn add_laid_out_mut<T: Element>(
        &mut self,
        name: &str,
        global_shape: &[i64],
        held: (&Layout, i32),
        data: &'a mut [T],
    ) -> Result<()> {
        self.add_one(|batch| batch.add_laid_out_mut(name, global_shape, held, data))
    }

    /// As [`State::add_laid_out`] for any dtype, with a copy of the bytes that the state owns.
    pub fn add_owned_laid_out(
        &mut self,
        name: &str,
        dtype: DType,
        global_shape: &[i64],
        held: (&Layout, i32),
        data: &[u8],
    ) -> Result<()> {
        self.add_one(|batch| batch.add_owned_laid_out(name, dtype, global_shape, held, data))
    }

    /// Adds a JSON value.
    pub fn add_json(&mut self, name: &str, text: &str) -> Result<()> {
        self.add_object(name, ("application/json", text.as_bytes()), "", Kind::Auto)
    }

    /// Adds a byte object, (content type, bytes), which are copied. `path`: nested path, empty = flat.
    pub fn add_object(&mut self, name: &str, content: (&str, &[u8]), path: &str, kind: Kind) -> Result<()> {
        self.add_one_object(&ObjectSpec { path, kind, ..ObjectSpec::flat(name, content.0) }, content.1)
    }

    /// As [`State::add_object`] for what another rank saves: loads fill it.
    pub fn add_replica_object(&mut self, name: &str, content: (&str, &[u8]), path: &str, kind: Kind) -> Result<()> {
        self.add_one_object(&ObjectSpec { path, kind, replica: true, ..ObjectSpec::flat(name, content.0) }, content.1)
    }

    /// Adds all objects of a batch or none, in one call of the library. ALREADY_EXISTS for a doubled name, INVALID_ARGUMENT
    /// for a cell outside its grid.
    pub fn add_objects(&mut self, batch: &ObjectBatch) -> Result<()> {
        // SAFETY: the columns live for the call, which copies everything.
        Ok(unsafe { raw::state_add_objects(self.handle, &batch.columns()) }?)
    }

    fn add_one_object(&mut self, spec: &ObjectSpec, data: &[u8]) -> Result<()> {
        let mut batch = ObjectBatch::new();
        batch.add(spec, data)?;
        self.add_objects(&batch)
    }

    /// A state of what a mapping says of the entries of this one. Tensors are views of the same memory, so that nothing is
    /// copied where parts come together; objects are copied, number by number. Bytes that this state owns keep its names.
    /// INVALID_ARGUMENT for a rule that matches nothing, two that match one entry, and what does not fit.
    ///
    /// ```
    /// use shardwright::{Mapping, State};
    ///
    /// let fused = [1.0f32, 2.0, 3.0, 4.0]; // [W; V]
    /// let mut state = State::new();
    /// state.add("mlp.linear_fc1.bias", &[4], &fused)?;
    /// let rules = r#"{"schema": 1, "rules": [{"match": "*.linear_fc1.bias",
    ///     "steps": [{"split": {"axis": 0, "suffixes": ["_w", "_v"]}}]}]}"#;
    /// let state = state.mapped(&Mapping::parse(rules, &[])?)?;
    /// assert_eq!(state.tensor_names(), ["mlp.linear_fc1.bias_w", "mlp.linear_fc1.bias_v"]);
    /// # Ok::<(), shardwright::Error>(())
    /// ```
    pub fn mapped(mut self, mapping: &Mapping) -> Result<State<'a>> {
        // SAFETY: both handles live as long as their owners; the new state keeps what it needs of the old one.
        let handle = unsafe { raw::state_map(self.handle, mapping.handle()) }?;
        // SAFETY: owned until here, and replaced.
        unsafe { ffi::shw_state_release(std::mem::replace(&mut self.handle, handle)) };
        Ok(self)
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

    /// After a load, before the host sees its memory again: bools that were filled are bools. The error of the load comes
    /// before that of what it left.
    pub(crate) fn loaded(&mut self, outcome: Result<Report>) -> Result<Report> {
        let mut refused = Ok(());
        for bools in &self.bools {
            // SAFETY: borrowed exclusively as long as self, and no call is using it.
            refused = refused.and(unsafe { bools.restore() });
        }
        outcome.and_then(|report| refused.map(|()| report))
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
