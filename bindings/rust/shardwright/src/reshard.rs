// SPDX-License-Identifier: Apache-2.0
//! Checkpoints of Megatron for jobs with other parallel sizes.

use crate::cancellation::Cancellation;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::limits::deadline_ns;
use crate::options::{Durability, Overwrite, cancellation_handle, choice, options, text_pointer, unknown_word};
use crate::report::Report;
use crate::text::c_text;
use crate::workflow::{CLocation, Location};
use shardwright_sys::{ffi, raw};
use std::ffi::CString;
use std::time::Duration;

choice! {
    /// How the distributed optimizer of a checkpoint of Megatron is stored.
    OptimizerLayout {
        /// With the shapes of its parameters: jobs of any shape load it.
        #[default] FullyReshardable = SHW_OPTIMIZER_FULLY_RESHARDABLE, "fully_reshardable";
        /// In buckets, as it was: only jobs of equal tensor, pipeline and expert sizes load it.
        DpReshardable = SHW_OPTIMIZER_DP_RESHARDABLE, "dp_reshardable";
    }
}

options! {
/// Options of [`reshard`](crate::reshard).
pub struct ReshardOptions {
    /// Tensor-parallel size of the target job; 0 = as in the source.
    pub tensor_parallel: u32,
    /// Pipeline-parallel size; 0 = as in the source.
    pub pipeline_parallel: u32,
    /// Expert-parallel size; 0 = as in the source.
    pub expert_parallel: u32,
    /// Tensor-parallel size of experts; 0 = that of the rest, or as in the source where it differs there.
    pub expert_tensor_parallel: u32,
    /// Data-parallel size; 0 = 1.
    pub data_parallel: u32,
    /// Layers of each pipeline stage; empty = as in the source where it has as many stages, else all have as many.
    pub pipeline_layers: Vec<u32>,
    /// How its optimizer is stored.
    pub optimizer: OptimizerLayout,
    /// The target job as JSON text; what is said here wins over it.
    pub job: Option<String>,
    /// What no checkpoint tells, as JSON text: what lies where in buckets, rules of a mapping, when
    /// buckets are full.
    pub map: Option<String>,
    /// Everything is proved and nothing is written.
    pub dry_run: bool,
    /// Whether another checkpoint at the target is replaced.
    pub overwrite: Overwrite = Overwrite::Refuse,
    /// What the target survives.
    pub durability: Durability,
    /// Whether what was written is read back and compared.
    pub compare: bool = true,
    /// Worker threads; 0 = all of the context.
    pub threads: u32,
    /// Mode of new files; 0 = 0666 and the umask.
    pub file_mode: u32,
    /// Bytes of staging memory for reading and writing together; 0 = that of the context.
    pub memory_budget: u64,
    /// Limit of the whole call.
    pub deadline: Option<Duration>,
    /// Ends the call early.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub cancellation: Option<Cancellation>,
}
}

/// The C struct and the texts that it points to; what it points to of the options must outlive it.
pub(crate) struct CReshardOptions {
    pub options: ffi::shw_reshard_options,
    _job: Option<CString>,
    _map: Option<CString>,
}

impl ReshardOptions {
    pub(crate) fn to_c(&self) -> Result<CReshardOptions> {
        let job = self.job.as_deref().map(|text| c_text("job", text)).transpose()?;
        let map = self.map.as_deref().map(|text| c_text("map", text)).transpose()?;
        // SAFETY: a plain struct for which all zero is valid.
        let mut c: ffi::shw_reshard_options = unsafe { std::mem::zeroed() };
        c.struct_size = size_of::<ffi::shw_reshard_options>() as u32;
        let without_comparison = if self.compare { 0 } else { ffi::SHW_RESHARD_WITHOUT_COMPARISON };
        let dry_run = if self.dry_run { ffi::SHW_RESHARD_DRY_RUN } else { 0 };
        c.flags = (without_comparison | dry_run) as u32;
        c.tensor_parallel = self.tensor_parallel;
        c.pipeline_parallel = self.pipeline_parallel;
        c.expert_parallel = self.expert_parallel;
        c.expert_tensor_parallel = self.expert_tensor_parallel;
        c.data_parallel = self.data_parallel;
        c.pipeline_layers = self.pipeline_layers.as_ptr();
        c.pipeline_layer_count = self.pipeline_layers.len() as u64;
        c.optimizer = self.optimizer as i32;
        c.overwrite = self.overwrite as i32;
        c.durability = self.durability as i32;
        c.threads = self.threads;
        c.file_mode = self.file_mode;
        c.job = text_pointer(&job);
        c.map = text_pointer(&map);
        c.memory_budget = self.memory_budget;
        c.deadline_ns = deadline_ns(self.deadline);
        c.cancellation = cancellation_handle(&self.cancellation);
        Ok(CReshardOptions { options: c, _job: job, _map: map })
    }
}

/// Saves the checkpoint of Megatron at `source` to `target` as a job with other parallel sizes would have saved it, optimizer
/// included; the source is only read. What lies in a bucket of the distributed optimizer is proved by its contents:
/// FAILED_PRECONDITION where nothing proves it and no map says it. What was written stays when the call fails, and the same
/// call goes on with it.
pub fn reshard(source: &Location, target: &Location, options: &ReshardOptions) -> Result<Report> {
    let context = Context::shared()?;
    let (from, to) = (CLocation::of(source)?, CLocation::of(target)?);
    let how = options.to_c()?;
    // SAFETY: handles, options and text live for the call.
    Ok(Report::new(unsafe {
        raw::reshard(context.handle(), from.storage, from.path.as_ptr(), to.storage, to.path.as_ptr(), &how.options)
    }?))
}
