// SPDX-License-Identifier: Apache-2.0
//! Gathers and reductions under way.

use crate::error::{Error, ErrorKind, Result};
use crate::hsdp::units::{Hsdp, Unit};
use crate::job::answer;
use crate::limits::span_ns;
use shardwright_sys::{ffi, raw};
use std::time::Duration;

/// A gather or a reduction of a unit under way. Waiting for it changes memory of the [`Hsdp`], which it therefore asks for: no view of
/// that memory is alive meanwhile. It may outlive the `Hsdp`, and goes on in its unit when it is dropped.
pub struct Work {
    handle: *mut ffi::shw_work,
    context: u64,
}

// SAFETY: works are used by one thread at a time, which &mut ensures; their release comes from any thread.
unsafe impl Send for Work {}

impl Work {
    /// Waits until it has ended: whole parameters are there, or the gradient of the shard. A failure is returned again at each further
    /// call.
    pub fn wait(&mut self, hsdp: &mut Hsdp) -> Result<()> {
        self.ended_within(hsdp, None).map(drop)
    }

    /// The same for so long: false when it has not ended.
    pub fn wait_for(&mut self, hsdp: &mut Hsdp, timeout: Duration) -> Result<bool> {
        self.ended_within(hsdp, Some(timeout))
    }

    /// Whether it has ended, without waiting for what has not come.
    pub fn poll(&mut self, hsdp: &mut Hsdp) -> Result<bool> {
        self.wait_for(hsdp, Duration::ZERO)
    }

    fn ended_within(&mut self, hsdp: &mut Hsdp, timeout: Option<Duration>) -> Result<bool> {
        if hsdp.number() != self.context {
            return Err(Error::new(ErrorKind::InvalidArgument, "the work belongs to another context"));
        }
        let mut err = std::ptr::null_mut();
        // SAFETY: the handle lives as long as self, and nobody else calls the context.
        let status = unsafe { ffi::shw_work_wait(self.handle, span_ns(timeout), &mut err) };
        answer(status, err)
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Work").field("context", &self.context).finish_non_exhaustive()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_work_release(self.handle) }
    }
}

impl Hsdp {
    /// Begins to gather; the [`Work`] ends it, as [`Hsdp::wait`] and the phases do.
    pub fn begin_unshard(&mut self, unit: Unit) -> Result<Work> {
        // SAFETY: the handle lives; the work is owned from here on.
        Ok(self.work(unsafe { raw::hsdp_unit_unshard(self.raw(unit)?) }?))
    }

    /// Gathers; the unit is unsharded afterwards.
    pub fn unshard(&mut self, unit: Unit) -> Result<()> {
        self.begin_unshard(unit)?.wait(self)
    }

    /// Packs the gradients that were handed in, reshards, and begins to reduce; the [`Work`] brings them into the gradient of the shard
    /// (or the partial sum), as [`Hsdp::finalize_backward`] does.
    pub fn begin_reduce(&mut self, unit: Unit) -> Result<Work> {
        // SAFETY: as in begin_unshard.
        Ok(self.work(unsafe { raw::hsdp_unit_reduce(self.raw(unit)?) }?))
    }

    /// The same, and waits.
    pub fn reduce(&mut self, unit: Unit) -> Result<()> {
        self.begin_reduce(unit)?.wait(self)
    }

    fn work(&self, handle: *mut ffi::shw_work) -> Work {
        Work { handle, context: self.number() }
    }
}
