// SPDX-License-Identifier: Apache-2.0
//! Byte objects on their way into a state: flat columns, so that many cost one call of the library.

use crate::error::{Error, ErrorKind, Result};
use crate::options::Kind;
use crate::tensor_batch::Grid;
use crate::text::Blob;
use shardwright_sys::ffi;

/// What a byte object is, apart from its bytes.
#[derive(Clone, Copy, Debug)]
pub struct ObjectSpec<'b> {
    /// Fully qualified name; what all cells share for a cell of a grid, which the state calls by
    /// [`ObjectKey::name`](crate::ObjectKey::name).
    pub name: &'b str,
    /// What the bytes are, such as "application/json".
    pub content_type: &'b str,
    /// Nested path as JSON array text; empty = flat. Cells of grids are flat.
    pub path: &'b str,
    /// Who holds the entry.
    pub kind: Kind,
    /// The cell that it is of a grid of `fragments` cells per axis.
    pub grid: Option<Grid<'b>>,
    /// Another rank saves it; loads fill it.
    pub replica: bool,
}

impl<'b> ObjectSpec<'b> {
    /// A flat object of its own.
    pub fn flat(name: &'b str, content_type: &'b str) -> ObjectSpec<'b> {
        ObjectSpec { name, content_type, path: "", kind: Kind::Auto, grid: None, replica: false }
    }
}

/// Many byte objects for [`State::add_objects`](crate::State::add_objects). Everything is copied.
#[derive(Debug)]
pub struct ObjectBatch {
    names: Blob,
    data: Blob,
    content_types: Blob,
    paths: Blob,
    kinds: Vec<i32>,
    replica_ids: Vec<i32>,
    grid_shapes: Vec<i64>,
    grid_indices: Vec<i64>,
    grid_offsets: Vec<u64>,
}

impl Default for ObjectBatch {
    fn default() -> ObjectBatch {
        ObjectBatch::new()
    }
}

impl ObjectBatch {
    /// A batch without objects.
    pub fn new() -> ObjectBatch {
        let none = || Blob::of([""; 0]);
        ObjectBatch {
            names: none(),
            data: none(),
            content_types: none(),
            paths: none(),
            kinds: Vec::new(),
            replica_ids: Vec::new(),
            grid_shapes: Vec::new(),
            grid_indices: Vec::new(),
            grid_offsets: vec![0],
        }
    }

    /// Adds an object. INVALID_ARGUMENT for a grid without axes and for other counts of indices than of axes; the batch is as
    /// it was.
    ///
    /// ```
    /// use shardwright::{Grid, ObjectBatch, ObjectSpec, State};
    ///
    /// let mut batch = ObjectBatch::new();
    /// let grid = Some(Grid { fragments: &[2, 4], index: &[0, 1] });
    /// batch.add(&ObjectSpec { grid, ..ObjectSpec::flat("rng", "application/octet-stream") }, b"seed")?;
    /// let mut state = State::new();
    /// state.add_objects(&batch)?;
    /// assert_eq!(state.object_names(), ["rng/shard_0.1_2.4"]);
    /// # Ok::<(), shardwright::Error>(())
    /// ```
    pub fn add(&mut self, spec: &ObjectSpec, data: &[u8]) -> Result<()> {
        if let Some(grid) = &spec.grid {
            let (axes, indices) = (grid.fragments.len(), grid.index.len());
            if axes != indices || axes == 0 {
                let text = format!("object {}: {indices} indices in a grid of {axes} axes", spec.name);
                return Err(Error::new(ErrorKind::InvalidArgument, text).with_detail("tensor", spec.name));
            }
            self.grid_shapes.extend(grid.fragments);
            self.grid_indices.extend(grid.index);
        }
        self.grid_offsets.push(self.grid_shapes.len() as u64);
        self.names.push(spec.name);
        self.data.push(data);
        self.content_types.push(spec.content_type);
        self.paths.push(spec.path);
        self.kinds.push(spec.kind as i32);
        self.replica_ids.push(i32::from(spec.replica));
        Ok(())
    }

    /// For C; it borrows from self.
    pub(crate) fn columns(&self) -> ffi::shw_object_batch {
        // SAFETY: a plain struct for which all zero is valid.
        let mut batch: ffi::shw_object_batch = unsafe { std::mem::zeroed() };
        batch.struct_size = size_of::<ffi::shw_object_batch>() as u32;
        batch.count = self.names.count();
        batch.names = self.names.bytes.as_ptr().cast();
        batch.name_offsets = self.names.offsets.as_ptr();
        batch.data = self.data.bytes.as_ptr().cast();
        batch.data_offsets = self.data.offsets.as_ptr();
        batch.content_types = self.content_types.bytes.as_ptr().cast();
        batch.content_type_offsets = self.content_types.offsets.as_ptr();
        batch.paths = self.paths.bytes.as_ptr().cast();
        batch.path_offsets = self.paths.offsets.as_ptr();
        batch.kinds = self.kinds.as_ptr();
        batch.replica_ids = self.replica_ids.as_ptr();
        batch.grid_shapes = self.grid_shapes.as_ptr();
        batch.grid_indices = self.grid_indices.as_ptr();
        batch.grid_offsets = self.grid_offsets.as_ptr();
        batch
    }
}
