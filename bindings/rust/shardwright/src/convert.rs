// SPDX-License-Identifier: Apache-2.0
//! Checkpoints saved again in another format.

use crate::cancellation::Cancellation;
use crate::context::Context;
use crate::error::Result;
use crate::limits::deadline_ns;
use crate::options::{Common, Durability, Format, Integrity, Overwrite, cancellation_handle, options};
use crate::report::Report;
use crate::workflow::{CLocation, Location};
use shardwright_sys::{ffi, raw};
use std::time::Duration;

options! {
/// Options of [`convert`](crate::convert).
pub struct ConvertOptions {
    /// Format of the target.
    pub format: Format = Format::Native,
    /// Whether another checkpoint at the target is replaced.
    pub overwrite: Overwrite = Overwrite::Refuse,
    /// What the target survives.
    pub durability: Durability,
    /// Whether the digests of all tensors are compared in the end.
    pub compare: bool = true,
    /// Where Megatron's format keeps the common state.
    pub common: Common,
    /// Whether Megatron's format lists the SHA-256 of each file; other formats refuse it.
    pub integrity: Integrity,
    /// Worker threads; 0 = all of the context.
    pub threads: u32,
    /// Mode of new files; 0 = 0666 and the umask.
    pub file_mode: u32,
    /// Bytes of staging memory for reading and writing together; 0 = that of the context.
    pub memory_budget: u64,
    /// Bytes of tensors in one file; 0 = 5e9.
    pub max_shard_size: u64,
    /// Limit of the whole call.
    pub deadline: Option<Duration>,
    /// Ends the call early.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub cancellation: Option<Cancellation>,
}
}

impl ConvertOptions {
    pub(crate) fn to_c(&self) -> ffi::shw_convert_options {
        // SAFETY: a plain struct for which all zero is valid.
        let mut c: ffi::shw_convert_options = unsafe { std::mem::zeroed() };
        c.struct_size = size_of::<ffi::shw_convert_options>() as u32;
        c.flags = if self.compare { 0 } else { ffi::SHW_CONVERT_WITHOUT_COMPARISON as u32 };
        c.format = self.format as i32;
        c.common = self.common as i32;
        c.integrity = self.integrity as i32;
        c.overwrite = self.overwrite as i32;
        c.durability = self.durability as i32;
        c.threads = self.threads;
        c.file_mode = self.file_mode;
        c.memory_budget = self.memory_budget;
        c.max_shard_size = self.max_shard_size;
        c.deadline_ns = deadline_ns(self.deadline);
        c.cancellation = cancellation_handle(&self.cancellation);
        c
    }
}

/// Saves the checkpoint at `source` to `target` in another format, in bounded memory; the source is only read. It may be a
/// directory of Megatron-core's zarr backend, which nothing else takes. What was written stays when the call fails, and the
/// same call goes on with it.
pub fn convert(source: &Location, target: &Location, options: &ConvertOptions) -> Result<Report> {
    let context = Context::shared()?;
    let (from, to) = (CLocation::of(source)?, CLocation::of(target)?);
    let how = options.to_c();
    // SAFETY: handles, options and text live for the call.
    Ok(Report::new(unsafe {
        raw::convert(context.handle(), from.storage, from.path.as_ptr(), to.storage, to.path.as_ptr(), &how)
    }?))
}
