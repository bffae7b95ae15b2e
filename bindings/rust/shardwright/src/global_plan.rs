// SPDX-License-Identifier: Apache-2.0
//! Global plans: who writes what in a whole job, by arithmetic on layouts.
//!
//! Ranks that differ only by their place in a mesh make equal descriptions. They exchange 16 bytes each, one description
//! per distinct digest, and parts where there are any; whoever has these makes the same plan, equal in every byte to the
//! merge of explicit local plans, at a cost that does not grow with ranks x tensors:
//!
//! ```
//! use shardwright::planning::{DescribeOptions, Entry, EntryBatch, MergeOptions};
//! use shardwright::global_plan::{self, GlobalPlan};
//! use shardwright::{DType, Layout, Placement};
//!
//! let layout = Layout::new(&[4], &[], &[Placement::Shard(0)])?;
//! let mut batch = EntryBatch::new();
//! batch.add_laid_out(&Entry::tensor("weight", DType::from_name("float32")?, &[8, 3]));
//! let mut all = Vec::new(); // on one rank each, then all_gather
//! for rank in 0..4 {
//!     let options = DescribeOptions::new().rank(rank).world_size(4);
//!     all.push(global_plan::describe(&batch, &[Some(&layout)], &options)?);
//! }
//! let digests: Vec<_> = all.iter().map(|each| each.digest).collect();
//! assert_eq!(global_plan::representatives(&digests)?, [0]); // rank 0 sends its description
//! let plan = GlobalPlan::new(&digests, &[&all[0].description], &[], &MergeOptions::default())?;
//! assert_eq!(plan.owners("weight")?, [0, 1, 2, 3]);
//! assert_eq!(plan.rank_bytes()?, [24, 24, 24, 24]);
//! # Ok::<(), shardwright::Error>(())
//! ```

use crate::error::{Error, ErrorKind, Result};
use crate::layout::Layout;
use crate::planning::{DescribeOptions, Digest, EntryBatch, MergeOptions};
use crate::text::{Blob, Parts};
use shardwright_sys::{ffi, raw};
use std::ffi::CString;

/// What one rank says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// A plan buffer that names no rank.
    pub description: Vec<u8>,
    /// What stands for it.
    pub digest: Digest,
    /// A plan buffer of what only this rank knows: boxes without a layout, sizes of rank_local objects; empty when there
    /// is nothing.
    pub part: Vec<u8>,
}

/// The explicit plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expanded {
    /// A plan buffer of the merged plan.
    pub plan: Vec<u8>,
    /// The write list of each rank.
    pub write_lists: Vec<Vec<u8>>,
}

/// Describes what `options.rank` of `options.world_size` holds. `layouts` has one layout per entry, None where the boxes
/// of the batch count; an empty slice = no entry has one. Entries with a layout list no boxes
/// ([`EntryBatch::add_laid_out`]); numbers, order, secondary and attributes are not set. INVALID_ARGUMENT, OUT_OF_RANGE (a
/// box leaves its tensor), ALREADY_EXISTS (a name comes twice).
pub fn describe(batch: &EntryBatch, layouts: &[Option<&Layout>], options: &DescribeOptions) -> Result<Description> {
    if !layouts.is_empty() && layouts.len() != batch.len() {
        let text = format!("{} layouts for {} entries", layouts.len(), batch.len());
        return Err(Error::new(ErrorKind::InvalidArgument, text).with_detail("parameter", "layouts"));
    }
    let handles: Vec<*const ffi::shw_layout> =
        layouts.iter().map(|layout| layout.map_or(std::ptr::null(), Layout::handle)).collect();
    let list = if handles.is_empty() { std::ptr::null() } else { handles.as_ptr() };
    let (entries, rules) = (batch.to_c()?, options.to_c());
    // SAFETY: structs, handles and what they point to live for the call.
    let parts = Parts::new(unsafe { raw::global_plan_describe(&rules.options, &entries, list) }?);
    Ok(Description { description: parts.part(0), digest: parts.digest(1)?, part: parts.part(2) })
}

/// Ranks that send their description: the lowest of each distinct digest. `digests`: one per rank.
pub fn representatives(digests: &[Digest]) -> Result<Vec<i32>> {
    // SAFETY: the slice lives for the call; its digests lie back to back.
    let parts = unsafe { raw::global_plan_representatives(digests.as_ptr().cast(), digests.len() as u64) }?;
    Ok(Parts::new(parts).values(0))
}

fn c_text(generation: &str) -> Result<CString> {
    CString::new(generation).map_err(|_| {
        Error::new(ErrorKind::InvalidArgument, "the generation holds a NUL").with_detail("parameter", "generation")
    })
}

/// Who writes what in a whole job. Immutable, thread-safe.
pub struct GlobalPlan(*mut ffi::shw_global_plan);

// SAFETY: plans are immutable.
unsafe impl Send for GlobalPlan {}
// SAFETY: as above.
unsafe impl Sync for GlobalPlan {}

impl GlobalPlan {
    /// The plan of all ranks. `digests`: one per rank; `descriptions`: those of [`representatives`] in their order;
    /// `parts`: those of the ranks that have one, in any order, empty ones are skipped. Owners are balanced, lowest_rank, or
    /// exact of the preset Megatron, the cover full. INVALID_ARGUMENT when ranks contradict each other or chunks do not
    /// cover a tensor (ranks are named), DATA_LOSS, UNIMPLEMENTED.
    pub fn new<P: AsRef<[u8]>>(
        digests: &[Digest],
        descriptions: &[P],
        parts: &[P],
        options: &MergeOptions,
    ) -> Result<GlobalPlan> {
        let described = Blob::of(descriptions);
        let parts = Blob::of(parts.iter().filter(|part| !part.as_ref().is_empty()));
        // SAFETY: digests, blobs and options live for the call.
        let handle = unsafe {
            raw::global_plan_create(
                &options.to_c(),
                digests.as_ptr().cast(),
                digests.len() as u64,
                described.bytes.as_ptr().cast(),
                described.offsets.as_ptr(),
                described.count(),
                parts.bytes.as_ptr().cast(),
                parts.offsets.as_ptr(),
                parts.count(),
            )
        }?;
        Ok(GlobalPlan(handle))
    }

    /// What the rank writes, as a plan buffer. `generation`: 32 hex digits; `plan_digest`: what the list carries, None =
    /// that of [`GlobalPlan::digest`].
    pub fn write_list(&self, rank: i32, generation: &str, plan_digest: Option<&Digest>) -> Result<Vec<u8>> {
        let generation = c_text(generation)?;
        let digest = plan_digest.map_or(std::ptr::null(), |digest| digest.as_ptr().cast());
        // SAFETY: the handle lives as long as self, here and below; text and digest live for the call.
        let parts = unsafe { raw::global_plan_write_list(self.0, rank, generation.as_ptr(), digest) }?;
        Ok(Parts::new(parts).bytes())
    }

    /// Bytes that each rank writes, without padding.
    pub fn rank_bytes(&self) -> Result<Vec<u64>> {
        Ok(Parts::new(unsafe { raw::global_plan_rank_bytes(self.0) }?).values(0))
    }

    /// Rank that writes each chunk of a tensor that is not rank_local, in the order of the explicit catalog. NOT_FOUND.
    pub fn owners(&self, name: &str) -> Result<Vec<i32>> {
        Ok(Parts::new(unsafe { raw::global_plan_owners(self.0, name.as_bytes()) }?).values(0))
    }

    /// Counts as JSON text with "schema": 1: ranks, descriptions, tensors, items, chunks, objects, files, bytes,
    /// most_bytes (of the rank that writes most).
    pub fn json(&self) -> Result<String> {
        let parts = Parts::new(unsafe { raw::global_plan_json(self.0) }?);
        Ok(String::from_utf8_lossy(&parts.bytes()).into_owned())
    }

    /// Equal on all ranks that made this plan.
    pub fn digest(&self) -> Result<Digest> {
        Parts::new(unsafe { raw::global_plan_digest(self.0) }?).digest(0)
    }

    /// The explicit plan; costs what that costs.
    pub fn expand(&self, generation: &str) -> Result<Expanded> {
        let generation = c_text(generation)?;
        let parts = Parts::new(unsafe { raw::global_plan_expand(self.0, generation.as_ptr()) }?);
        let (plan, write_lists) = parts.first_and_rest();
        Ok(Expanded { plan, write_lists })
    }
}

impl std::fmt::Debug for GlobalPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("GlobalPlan").finish_non_exhaustive()
    }
}

impl Drop for GlobalPlan {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_global_plan_release(self.0) }
    }
}
