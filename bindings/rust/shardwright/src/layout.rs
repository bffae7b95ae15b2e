// SPDX-License-Identifier: Apache-2.0
//! Layouts: a mesh of ranks and what its axes do to a tensor.

use crate::error::Result;
use crate::text::Blob;
use shardwright_sys::{ffi, raw};
use std::sync::Arc;

/// What a mesh axis does to a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// Every rank of the axis holds all of it.
    Replicate,
    /// It is split along a tensor dimension, uneven as torch.chunk does it; negative counts from the end.
    Shard(i32),
    /// The dimension is first cut into `factor` parts, and a rank holds its part of each, as torch's _StridedShard does it.
    StridedShard {
        /// Tensor dimension; negative counts from the end.
        dim: i32,
        /// How many parts; at least 1.
        factor: i32,
    },
    /// The row-major elements that the other axes leave are split, so that the local tensor has one dimension.
    Flat,
}

impl Placement {
    /// (kind, dimension, factor) of the C interface.
    fn columns(self) -> (i32, i32, i32) {
        match self {
            Placement::Replicate => (ffi::SHW_PLACEMENT_REPLICATE, 0, 0),
            Placement::Shard(dim) => (ffi::SHW_PLACEMENT_SHARD, dim, 0),
            Placement::StridedShard { dim, factor } => (ffi::SHW_PLACEMENT_STRIDED_SHARD, dim, factor),
            Placement::Flat => (ffi::SHW_PLACEMENT_FLAT, 0, 0),
        }
    }
}

/// One box that a rank holds and where it begins in the rank's local tensor. A box is a window of a local tensor that has
/// its number of dimensions, and a run of elements of any other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Piece {
    /// First element per dimension of the whole tensor.
    pub offsets: Vec<i64>,
    /// Extent per dimension.
    pub sizes: Vec<i64>,
    /// Row-major element of the local tensor at which it begins.
    pub local_offset: i64,
}

/// Pieces from boxes back to back and their local offsets.
pub(crate) fn pieces_of(values: &[i64], local_offsets: &[i64], ndim: usize) -> Vec<Piece> {
    let piece = |(i, &local_offset): (usize, &i64)| {
        let (offsets, sizes) = values[i * ndim * 2..(i + 1) * ndim * 2].split_at(ndim);
        Piece { offsets: offsets.to_vec(), sizes: sizes.to_vec(), local_offset }
    };
    local_offsets.iter().enumerate().map(piece).collect()
}

/// A rule that gives each rank the boxes of a tensor that it holds. Immutable, thread-safe; clones share it.
#[derive(Clone)]
pub struct Layout(Arc<OwnedLayout>);

struct OwnedLayout(*mut ffi::shw_layout);

// SAFETY: layouts are immutable.
unsafe impl Send for OwnedLayout {}
// SAFETY: as above.
unsafe impl Sync for OwnedLayout {}

impl std::fmt::Debug for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Layout").finish_non_exhaustive()
    }
}

impl Layout {
    /// `mesh`: extents; `ranks`: global ranks in row-major order, empty = 0, 1, 2, ...; one placement per mesh
    /// axis, which cut from the first axis to the last.
    pub fn new(mesh: &[i64], ranks: &[i32], placements: &[Placement]) -> Result<Layout> {
        if mesh.len() != placements.len() {
            let text = format!("{} placements for a mesh of {} axes", placements.len(), mesh.len());
            return Err(crate::Error::new(crate::ErrorKind::InvalidArgument, text));
        }
        let (mut kinds, mut dims, mut factors) = (Vec::new(), Vec::new(), Vec::new());
        for placement in placements {
            let (kind, dim, factor) = placement.columns();
            kinds.push(kind);
            dims.push(dim);
            factors.push(factor);
        }
        let mut spec = spec_of(mesh, ranks);
        spec.placement_kinds = kinds.as_ptr();
        spec.placement_dims = dims.as_ptr();
        spec.placement_factors = factors.as_ptr();
        // SAFETY: the arrays live for the call, everything is copied.
        Ok(Layout(Arc::new(OwnedLayout(unsafe { raw::layout_create(&spec) }?))))
    }

    /// HyperParallel's form, for tensors of as many dimensions as the map has entries: per dimension the mesh axes that
    /// split it, the outermost first, counted from the right (0 = last axis); -1 or none = not split. `names` of the mesh
    /// axes may be empty; UNIMPLEMENTED when one is "interleaved_parallel".
    pub fn with_tensor_map(mesh: &[i64], ranks: &[i32], names: &[&str], map: &[&[i32]]) -> Result<Layout> {
        if !names.is_empty() && names.len() != mesh.len() {
            let text = format!("{} names for a mesh of {} axes", names.len(), mesh.len());
            return Err(crate::Error::new(crate::ErrorKind::InvalidArgument, text));
        }
        let texts = Blob::of(names);
        let axes: Vec<i32> = map.concat();
        let mut offsets = vec![0u64];
        for entry in map {
            offsets.push(offsets[offsets.len() - 1] + entry.len() as u64);
        }
        let mut spec = spec_of(mesh, ranks);
        if !names.is_empty() {
            spec.axis_names = texts.bytes.as_ptr().cast();
            spec.axis_name_offsets = texts.offsets.as_ptr();
        }
        spec.tensor_map = axes.as_ptr();
        spec.tensor_map_offsets = offsets.as_ptr();
        spec.tensor_ndim = map.len() as i32;
        // SAFETY: as above.
        Ok(Layout(Arc::new(OwnedLayout(unsafe { raw::layout_create(&spec) }?))))
    }

    /// # Safety
    /// The handle is owned, and becomes the layout's.
    pub(crate) unsafe fn of(handle: *mut ffi::shw_layout) -> Layout {
        Layout(Arc::new(OwnedLayout(handle)))
    }

    pub(crate) fn handle(&self) -> *const ffi::shw_layout {
        self.0.0
    }

    /// Number of ranks in the mesh.
    pub fn rank_count(&self) -> u64 {
        // SAFETY: the handle lives.
        unsafe { ffi::shw_layout_rank_count(self.handle()) }
    }

    /// Whether the rank is in the mesh.
    pub fn contains(&self, rank: i32) -> bool {
        // SAFETY: as above.
        unsafe { ffi::shw_layout_contains(self.handle(), rank) != 0 }
    }

    /// (offsets, sizes) of each box that `rank` holds of a tensor of this shape; none when it is not in the mesh.
    pub fn boxes(&self, shape: &[i64], rank: i32) -> Result<Vec<(Vec<i64>, Vec<i64>)>> {
        Ok(self.pieces(shape, rank)?.into_iter().map(|piece| (piece.offsets, piece.sizes)).collect())
    }

    /// The boxes that `rank` holds of a tensor of this shape and where they begin in its local tensor.
    pub fn pieces(&self, shape: &[i64], rank: i32) -> Result<Vec<Piece>> {
        let ndim = shape.len();
        let (extents, dims) = (shape.as_ptr(), ndim as i32);
        // SAFETY: arrays and handle live for the calls.
        let count = unsafe { raw::layout_box_count(self.handle(), extents, dims, rank) }? as usize;
        let mut values = vec![0i64; count * ndim * 2];
        let mut starts = vec![0i64; count];
        let mut size = 0;
        unsafe {
            raw::layout_boxes(self.handle(), extents, dims, rank, values.as_mut_ptr(), values.len() as u64, &mut size)?;
            raw::layout_local_offsets(
                self.handle(),
                extents,
                dims,
                rank,
                starts.as_mut_ptr(),
                count as u64,
                &mut size,
            )?;
        }
        Ok(pieces_of(&values, &starts, ndim))
    }

    /// Shape of the local tensor of `rank`; its number of elements where an axis is flat, one 0 outside the mesh.
    pub fn local_shape(&self, shape: &[i64], rank: i32) -> Result<Vec<i64>> {
        let mut local = vec![0i64; shape.len().max(1)];
        let mut size = 0;
        // SAFETY: arrays and handle live for the call.
        unsafe {
            raw::layout_local_shape(
                self.handle(),
                shape.as_ptr(),
                shape.len() as i32,
                rank,
                local.as_mut_ptr(),
                local.len() as u64,
                &mut size,
            )
        }?;
        local.truncate(size as usize);
        Ok(local)
    }
}

/// What both forms have; the arrays must live as long as it.
pub(crate) fn spec_of(mesh: &[i64], ranks: &[i32]) -> ffi::shw_layout_spec {
    // SAFETY: a plain struct for which all zero is valid.
    let mut spec: ffi::shw_layout_spec = unsafe { std::mem::zeroed() };
    spec.struct_size = size_of::<ffi::shw_layout_spec>() as u32;
    spec.mesh_ndim = mesh.len() as i32;
    spec.mesh_shape = mesh.as_ptr();
    if !ranks.is_empty() {
        spec.ranks = ranks.as_ptr();
        spec.rank_count = ranks.len() as u64;
    }
    spec
}

impl Drop for OwnedLayout {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_layout_release(self.0) }
    }
}
