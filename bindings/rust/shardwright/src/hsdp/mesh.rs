// SPDX-License-Identifier: Apache-2.0
//! Meshes with communicators.

use crate::error::Result;
use crate::hsdp::communicator::Communicator;
use shardwright_sys::{ffi, raw};

/// What a communicator of an axis is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lane {
    /// Gathers, and reductions unless they have their own.
    Gather,
    /// Reductions.
    Reduce,
    /// Neighbours that each keep a part of gathered parameters after forward.
    Secondary,
}

/// The ranks of a job and the communicators along its axes. Contexts keep it alive.
pub struct Mesh {
    handle: *mut ffi::shw_hsdp_mesh,
    shape: Vec<i64>,
}

// SAFETY: nothing in a mesh is tied to a thread; changes need &mut.
unsafe impl Send for Mesh {}

impl Mesh {
    /// `shape`: extents of its axes, whose ranks are 0, 1, 2, ... in row-major order. INVALID_ARGUMENT where `rank` is none of
    /// them.
    pub fn new(shape: &[i64], rank: i32) -> Result<Mesh> {
        Mesh::with_ranks(shape, &[], rank)
    }

    /// The same with global ranks in row-major order.
    pub fn with_ranks(shape: &[i64], ranks: &[i32], rank: i32) -> Result<Mesh> {
        let spec = crate::layout::spec_of(shape, ranks);
        // SAFETY: the arrays live for the call, everything is copied.
        let handle = unsafe { raw::hsdp_mesh_create(&spec, rank) }?;
        Ok(Mesh { handle, shape: shape.to_vec() })
    }

    /// Extents of the axes.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The communicator of an axis, whose ranks are those along the axis. Before the context is made, and again between a
    /// failure and [`Hsdp::reset`](crate::hsdp::Hsdp::reset). INVALID_ARGUMENT where rank or size do not fit.
    pub fn set_communicator(&mut self, axis: i32, lane: Lane, communicator: &Communicator) -> Result<()> {
        let lane = match lane {
            Lane::Gather => ffi::SHW_HSDP_LANE_GATHER,
            Lane::Reduce => ffi::SHW_HSDP_LANE_REDUCE,
            Lane::Secondary => ffi::SHW_HSDP_LANE_SECONDARY,
        };
        // SAFETY: both handles live for the call; the mesh keeps the communicator alive.
        Ok(unsafe { raw::hsdp_mesh_set_communicator(self.handle, axis, lane, communicator.handle()) }?)
    }

    pub(super) fn handle(&self) -> *mut ffi::shw_hsdp_mesh {
        self.handle
    }
}

impl std::fmt::Debug for Mesh {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Mesh").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_hsdp_mesh_release(self.handle) }
    }
}
