// SPDX-License-Identifier: Apache-2.0
//! Described jobs: what their saves and loads would cost is estimated on one machine.

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::options::{Owner, Preset, choice, options, unknown_word};
use crate::text::Parts;
use shardwright_sys::{ffi, raw};

choice! {
    /// Blocks of a load that several machines want, in an estimate.
    NodeExchange {
        /// Each machine reads them.
        #[default] Off = SHW_ESTIMATE_EXCHANGE_OFF, "off";
        /// One rank reads a block and sends it to one rank of each other machine.
        Always = SHW_ESTIMATE_EXCHANGE_ALWAYS, "always";
    }
}

options! {
/// How the cost of a plan is estimated.
pub struct EstimateOptions {
    /// Who writes what several ranks hold.
    pub owner: Owner,
    /// Planner behaviour.
    pub preset: Preset,
    /// Staging bytes of one rank, 0 = 256 MiB.
    pub memory_budget: u64,
    /// Bandwidth of one rank, 0 = not known.
    pub rank_bytes_per_second: u64,
    /// Bandwidth that all ranks share, 0 = not known.
    pub total_bytes_per_second: u64,
    /// Ranks of one machine, one after the other, which share what they read; for loads. 0 = each reads alone, 64 at most.
    pub ranks_per_node: u32,
    /// Whether machines send each other what several of them want; needs `ranks_per_node`.
    pub exchange: NodeExchange,
    /// Whether groups of tensors list the chunks of their first tensor (`chunk_list`), up to 1 Mi in all.
    pub chunks: bool,
}
}

impl EstimateOptions {
    fn to_c(&self, flags: u32) -> ffi::shw_estimate_options {
        // SAFETY: a plain struct for which all zero is valid.
        let mut options: ffi::shw_estimate_options = unsafe { std::mem::zeroed() };
        options.struct_size = size_of::<ffi::shw_estimate_options>() as u32;
        options.flags = if self.chunks { flags | ffi::SHW_ESTIMATE_WITH_CHUNKS as u32 } else { flags };
        options.owner = self.owner as i32;
        options.preset = self.preset as i32;
        options.memory_budget = self.memory_budget;
        options.rank_bytes_per_second = self.rank_bytes_per_second;
        options.total_bytes_per_second = self.total_bytes_per_second;
        options.ranks_per_node = self.ranks_per_node;
        options.exchange = self.exchange as i32;
        options
    }
}

/// A job described without any memory: its ranks, and what each holds of each tensor and object. Descriptions and
/// estimates are JSON text, named key by key in docs/formats/mesh.md. Immutable, thread-safe.
pub struct JobDescription(*mut ffi::shw_job_description);

// SAFETY: descriptions are immutable.
unsafe impl Send for JobDescription {}
// SAFETY: as above.
unsafe impl Sync for JobDescription {}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

impl JobDescription {
    /// Reads a JSON description. INVALID_ARGUMENT says line and column of what is wrong.
    pub fn new(json: &str) -> Result<JobDescription> {
        // SAFETY: the text lives for the call.
        Ok(JobDescription(unsafe { raw::job_description_create(json.as_bytes()) }?))
    }

    /// What a checkpoint stores: each chunk is held by the rank that wrote it.
    pub fn of_checkpoint(checkpoint: &Checkpoint) -> Result<JobDescription> {
        // SAFETY: the handle lives for the call.
        Ok(JobDescription(unsafe { raw::job_description_from_checkpoint(checkpoint.handle()) }?))
    }

    /// These tensors and objects as `target` lists them, else by the first of its rules that matches. NOT_FOUND,
    /// INVALID_ARGUMENT.
    pub fn lay_out(&self, target: &JobDescription) -> Result<JobDescription> {
        // SAFETY: both handles live for the call.
        Ok(JobDescription(unsafe { raw::job_description_lay_out(self.0, target.0) }?))
    }

    /// Number of ranks of the job.
    pub fn rank_count(&self) -> i32 {
        // SAFETY: the handle lives as long as self.
        unsafe { ffi::shw_job_description_rank_count(self.0) }
    }

    /// The JSON text of the description, repeats written out.
    pub fn json(&self) -> Result<String> {
        // SAFETY: the handle lives as long as self.
        Ok(text_of(Parts::new(unsafe { raw::job_description_json(self.0) }?).bytes()))
    }

    /// Plans the save of all ranks and estimates what it costs; nothing is written.
    pub fn estimate_save(&self, options: &EstimateOptions) -> Result<Estimate> {
        // SAFETY: handle and options live for the call.
        let parts = Parts::new(unsafe { raw::estimate_save(self.0, &options.to_c(0)) }?);
        Estimate::of(text_of(parts.bytes()))
    }

    /// The merged plan of the save of all ranks, as a plan buffer.
    pub fn save_plan(&self, options: &EstimateOptions) -> Result<Vec<u8>> {
        let flags = ffi::SHW_ESTIMATE_WITH_PLAN as u32;
        // SAFETY: handle and options live for the call.
        let parts = Parts::new(unsafe { raw::estimate_save(self.0, &options.to_c(flags)) }?);
        Ok(parts.all().swap_remove(1))
    }

    /// Plans the load of what this job stores by the ranks of `wanted` (made by lay_out; None = this job) and
    /// estimates what it costs. NOT_FOUND.
    pub fn estimate_load(&self, wanted: Option<&JobDescription>, options: &EstimateOptions) -> Result<Estimate> {
        let wanted = wanted.map_or(std::ptr::null(), |w| w.0.cast_const());
        // SAFETY: handles and options live for the call.
        let parts = Parts::new(unsafe { raw::estimate_load(self.0, wanted, &options.to_c(0)) }?);
        Estimate::of(text_of(parts.bytes()))
    }

    /// The load plan of each rank of `wanted`, as plan buffers, rank 0 first; as `estimate_load` otherwise.
    /// RESOURCE_EXHAUSTED for more than 4 GiB.
    pub fn load_plans(&self, wanted: Option<&JobDescription>, options: &EstimateOptions) -> Result<Vec<Vec<u8>>> {
        let wanted = wanted.map_or(std::ptr::null(), |w| w.0.cast_const());
        let flags = ffi::SHW_ESTIMATE_WITH_PLAN as u32;
        // SAFETY: handles and options live for the call.
        let parts = Parts::new(unsafe { raw::estimate_load(self.0, wanted, &options.to_c(flags)) }?);
        Ok(parts.all().split_off(1))
    }
}

impl std::fmt::Debug for JobDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("JobDescription").field("rank_count", &self.rank_count()).finish_non_exhaustive()
    }
}

impl Drop for JobDescription {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_job_description_release(self.0) }
    }
}
