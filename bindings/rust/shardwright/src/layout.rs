// SPDX-License-Identifier: Apache-2.0
//! Layouts: a mesh of ranks and one placement per mesh axis.

use crate::error::Result;
use shardwright_sys::{ffi, raw};

/// What a mesh axis does to a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Every rank of the axis holds all of it.
    Replicate,
    /// It is split along a tensor dimension, uneven as torch.chunk does it; negative counts from the end.
    Shard(i32),
}

/// A rule that gives each rank the boxes of a tensor that it holds. Immutable, thread-safe.
pub struct Layout(*mut ffi::shw_layout);

// SAFETY: layouts are immutable.
unsafe impl Send for Layout {}
// SAFETY: as above.
unsafe impl Sync for Layout {}

impl Layout {
    /// `mesh`: extents; `ranks`: global ranks in row-major order, empty = 0, 1, 2, ...; one placement per mesh axis.
    pub fn new(mesh: &[i64], ranks: &[i32], placements: &[Placement]) -> Result<Layout> {
        if mesh.len() != placements.len() {
            let text = format!("{} placements for a mesh of {} axes", placements.len(), mesh.len());
            return Err(crate::Error::new(crate::StatusCode::InvalidArgument, text));
        }
        let kinds: Vec<i32> = placements
            .iter()
            .map(|p| match p {
                Placement::Replicate => ffi::SHW_PLACEMENT_REPLICATE,
                Placement::Shard(_) => ffi::SHW_PLACEMENT_SHARD,
            })
            .collect();
        let dims: Vec<i32> = placements.iter().map(|p| if let Placement::Shard(d) = p { *d } else { 0 }).collect();
        // SAFETY: a plain struct for which all zero is valid.
        let mut spec: ffi::shw_layout_spec = unsafe { std::mem::zeroed() };
        spec.struct_size = size_of::<ffi::shw_layout_spec>() as u32;
        spec.mesh_ndim = mesh.len() as i32;
        spec.mesh_shape = mesh.as_ptr();
        if !ranks.is_empty() {
            spec.ranks = ranks.as_ptr();
            spec.rank_count = ranks.len() as u64;
        }
        spec.placement_kinds = kinds.as_ptr();
        spec.placement_dims = dims.as_ptr();
        // SAFETY: the arrays live for the call, everything is copied.
        Ok(Layout(unsafe { raw::layout_create(&spec) }?))
    }

    /// (offsets, sizes) of each box that `rank` holds of a tensor of this shape; none when it is not in the mesh.
    pub fn boxes(&self, shape: &[i64], rank: i32) -> Result<Vec<(Vec<i64>, Vec<i64>)>> {
        let ndim = shape.len();
        // SAFETY: arrays and handle live for the calls.
        let count = unsafe { raw::layout_box_count(self.0, shape.as_ptr(), ndim as i32, rank) }? as usize;
        let mut values = vec![0i64; count * ndim * 2];
        let mut size = 0;
        unsafe {
            raw::layout_boxes(
                self.0,
                shape.as_ptr(),
                ndim as i32,
                rank,
                values.as_mut_ptr(),
                values.len() as u64,
                &mut size,
            )
        }?;
        Ok((0..count)
            .map(|i| {
                let at = &values[i * ndim * 2..(i + 1) * ndim * 2];
                (at[..ndim].to_vec(), at[ndim..].to_vec())
            })
            .collect())
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_layout_release(self.0) }
    }
}
