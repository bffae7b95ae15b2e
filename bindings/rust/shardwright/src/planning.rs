// SPDX-License-Identifier: Apache-2.0
//! Planning by descriptions alone: no memory, no storage, no checkpoint.
//!
//! Every rank describes what it holds, the plan buffers travel as the host likes, one rank merges them and says which boxes
//! each rank keeps:
//!
//! ```
//! use shardwright::planning::{self, DescribeOptions, Entry, EntryBatch, MergeOptions, NOT_KEPT};
//! use shardwright::{DType, Owner};
//!
//! let float32 = DType::from_name("float32")?;
//! let mut plans = Vec::new();
//! for rank in 0..2 {
//!     let mut batch = EntryBatch::new();
//!     batch.add_boxes(&Entry::tensor("weight", float32, &[4, 2]), [([2 * rank, 0], [2, 2])])?;
//!     batch.add(&Entry::tensor("scale", float32, &[]));
//!     let options = DescribeOptions::new().rank(rank as i32).world_size(2);
//!     plans.push(planning::describe(&batch, &options)?);
//! }
//! let options = MergeOptions::new().owner(Owner::LowestRank);
//! let merged = planning::merge(&plans, &options)?;
//! assert_eq!(merged.kept, [[0, 0], [1, NOT_KEPT]]);
//! # Ok::<(), shardwright::Error>(())
//! ```

pub use crate::entry_batch::{Entry, EntryBatch};
pub use crate::options::Described;

use crate::error::{Error, ErrorKind, Result};
use crate::megatron::{answered, megatron, slot};
use crate::options::{Cover, Kind, MatchOrder, Missing, Owner, Preset, VerifyReplicas, options};
use crate::planner::Plan;
use crate::text::{Blob, Parts};
use shardwright_sys::error::RawError;
use shardwright_sys::{ffi, raw};

/// 16 bytes that stand for a content or a description.
pub type Digest = [u8; 16];

/// What a merge says of a box that its rank does not write.
pub const NOT_KEPT: u32 = ffi::SHW_NOT_KEPT as u32;

options! {
/// How entries become a plan.
pub struct DescribeOptions {
    /// What the entries describe; descriptions for a global plan are always of a rank.
    pub kind: Described,
    /// The rank that holds the entries.
    pub rank: i32,
    /// Ranks of the job; 0 = not known: such a plan is merged at any place and gets its place for its rank.
    pub world_size: i32,
    /// Kind by glob over names, first match wins.
    pub kinds: Vec<(String, Kind)>,
    /// Lines "option=value" that all ranks must have alike.
    pub agreement: String,
}
}

/// [`DescribeOptions`] for C, and what its pointers point to beside them.
pub(crate) struct CDescribeOptions {
    pub options: ffi::shw_describe_options,
    _globs: Blob,
    _kinds: Vec<i32>,
}

impl DescribeOptions {
    /// The agreement is borrowed from self.
    pub(crate) fn to_c(&self) -> CDescribeOptions {
        let globs = Blob::of(self.kinds.iter().map(|(glob, _)| glob));
        let kinds: Vec<i32> = self.kinds.iter().map(|(_, kind)| *kind as i32).collect();
        // SAFETY: a plain struct for which all zero is valid.
        let mut c: ffi::shw_describe_options = unsafe { std::mem::zeroed() };
        c.struct_size = size_of::<ffi::shw_describe_options>() as u32;
        c.kind = if self.kind == Described::LocalSave { 0 } else { self.kind as i32 };
        c.rank = self.rank;
        c.world_size = self.world_size;
        c.kind_globs = globs.bytes.as_ptr().cast();
        c.kind_offsets = globs.offsets.as_ptr();
        c.kind_values = kinds.as_ptr();
        c.kind_count = globs.count();
        c.agreement = self.agreement.as_ptr().cast();
        c.agreement_size = self.agreement.len() as u64;
        CDescribeOptions { options: c, _globs: globs, _kinds: kinds }
    }
}

options! {
/// How local plans are merged.
pub struct MergeOptions {
    /// Who writes what several ranks hold.
    pub owner: Owner,
    /// Whose words the rule has: which boxes are the same, and how chunks are numbered.
    pub preset: Preset,
    /// What is proved about the boxes of each tensor.
    pub cover: Cover,
    /// Off = sizes and digests of replicas are not compared.
    pub verify_replicas: VerifyReplicas,
}
}

impl MergeOptions {
    pub(crate) fn to_c(&self) -> ffi::shw_merge_options {
        // SAFETY: a plain struct for which all zero is valid.
        let mut c: ffi::shw_merge_options = unsafe { std::mem::zeroed() };
        c.struct_size = size_of::<ffi::shw_merge_options>() as u32;
        c.owner = self.owner as i32;
        c.preset = self.preset as i32;
        c.cover = self.cover as i32;
        c.verify_replicas = self.verify_replicas as i32;
        c
    }
}

options! {
/// How wanted boxes are matched with chunks.
pub struct MatchOptions {
    /// Order of the matches.
    pub order: MatchOrder,
    /// How often a wanted box is filled: exactly once, at most once, or not looked at.
    pub cover: Cover,
    /// Report = names that are not stored have no matches.
    pub missing: Missing,
    /// Of chunks with equal boxes only the first counts.
    pub first_replica: bool,
    /// Who wants: its rank_local entries are found, before shared ones of their name. None = shared ones only.
    pub rank: Option<i32>,
}
}

impl MatchOptions {
    fn to_c(&self) -> ffi::shw_match_options {
        // SAFETY: a plain struct for which all zero is valid.
        let mut c: ffi::shw_match_options = unsafe { std::mem::zeroed() };
        c.struct_size = size_of::<ffi::shw_match_options>() as u32;
        c.flags = if self.first_replica { ffi::SHW_MATCH_FIRST_REPLICA as u32 } else { 0 };
        c.flags |= if self.rank.is_some() { ffi::SHW_MATCH_RANK as u32 } else { 0 };
        c.rank = self.rank.unwrap_or(0);
        c.order = self.order as i32;
        c.cover = self.cover as i32;
        c.missing = self.missing as i32;
        c
    }
}

/// What a merge gives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merged {
    /// The merged plan.
    pub plan: Vec<u8>,
    /// For each rank one number for each box of its plan, as [`entries`] lists them: that of the box's chunk in its tensor
    /// (0 for an object), or [`NOT_KEPT`] where another rank writes it.
    pub kept: Vec<Vec<u32>>,
}

/// Common parts of wanted boxes and chunks, one row each, grouped by wanted entry. A stored object is one row without
/// dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Matches {
    /// Number of the wanted box.
    pub wanted: Vec<u64>,
    /// Number of the chunk in its tensor.
    pub chunks: Vec<u64>,
    /// Where the part begins in the wanted box; as many values per row as the tensor has dimensions.
    pub wanted_offsets: Vec<i64>,
    /// Where it begins in the chunk.
    pub stored_offsets: Vec<i64>,
    /// Its sizes.
    pub sizes: Vec<i64>,
    /// First row of each entry, and the end.
    pub entry_begins: Vec<u64>,
}

/// Shards that several ranks hold, as arrays.
#[derive(Clone, Copy, Debug)]
pub struct HeldShards<'a> {
    /// Bytes of each shard.
    pub weights: &'a [u64],
    /// The set of ranks that holds each shard.
    pub sets: &'a [u32],
    /// Set s is `holders[set_offsets[s]..set_offsets[s + 1]]`.
    pub set_offsets: &'a [u64],
    /// Ranks of all sets, ascending in each.
    pub holders: &'a [i32],
    /// Shards that are chosen after all others; None = no shard is.
    pub secondary: Option<&'a [bool]>,
}

/// Plan buffer of what the entries describe; equal entries give equal bytes. INVALID_ARGUMENT, OUT_OF_RANGE (a box leaves
/// its tensor), ALREADY_EXISTS (a name comes twice).
pub fn describe(batch: &EntryBatch, options: &DescribeOptions) -> Result<Vec<u8>> {
    let (entries, rules) = (batch.to_c()?, options.to_c());
    // SAFETY: both structs and what they point to live for the call.
    Ok(Parts::new(unsafe { raw::plan_describe(&rules.options, &entries) }?).bytes())
}

/// The entries of a local or merged plan, as they were described. INVALID_ARGUMENT for other plans.
pub fn entries(plan: &Plan) -> Result<EntryBatch> {
    // SAFETY: all zero is valid; the arrays are copied while the plan lives.
    unsafe {
        let mut batch: ffi::shw_entry_batch = std::mem::zeroed();
        batch.struct_size = size_of::<ffi::shw_entry_batch>() as u32;
        let mut err = std::ptr::null_mut();
        let status = ffi::shw_plan_entries(plan.handle(), &mut batch, &mut err);
        RawError::check(status, err)?;
        EntryBatch::copy_of(&batch)
    }
}

/// Merges the local plans of all ranks, which come in rank order. INVALID_ARGUMENT when ranks contradict each other (both
/// are named) or the proof fails (detail "cover"), DATA_LOSS, UNIMPLEMENTED.
pub fn merge<P: AsRef<[u8]>>(plans: &[P], options: &MergeOptions) -> Result<Merged> {
    let (blob, rules) = (Blob::of(plans), options.to_c());
    // SAFETY: blob and options live for the call.
    let made = unsafe { raw::plan_merge(&rules, blob.bytes.as_ptr().cast(), blob.offsets.as_ptr(), blob.count()) }?;
    let parts = Parts::new(made);
    Ok(Merged { plan: parts.part(0), kept: (1..=blob.count()).map(|part| parts.values(part)).collect() })
}

/// Intersects wanted boxes with the chunks of a merged plan, by name. NOT_FOUND with the nearest names, INVALID_ARGUMENT
/// for other shapes and for what is not filled.
pub fn match_entries(stored: &Plan, wanted: &EntryBatch, options: &MatchOptions) -> Result<Matches> {
    let (entries, rules) = (wanted.to_c()?, options.to_c());
    // SAFETY: handle, structs and what they point to live for the call.
    let parts = Parts::new(unsafe { raw::plan_match(&rules, stored.handle(), &entries) }?);
    Ok(Matches {
        wanted: parts.values(0),
        chunks: parts.values(1),
        wanted_offsets: parts.values(2),
        stored_offsets: parts.values(3),
        sizes: parts.values(4),
        entry_begins: parts.values(5),
    })
}

/// The rank that writes each shard, as preset megatron with owner exact chooses, from arrays alone. INVALID_ARGUMENT.
pub fn owners(shards: &HeldShards, rank_count: i32) -> Result<Vec<i32>> {
    let count = shards.sets.len();
    let secondary = shards.secondary.map_or(count, <[bool]>::len);
    let holders = shards.set_offsets.last().copied();
    if [shards.weights.len(), secondary] != [count; 2] || holders != Some(shards.holders.len() as u64) {
        let text = "the arrays of shards or sets differ in length";
        return Err(Error::new(ErrorKind::InvalidArgument, text));
    }
    let mut chosen = vec![0; count];
    let call = slot(megatron()?.plan_owners);
    // SAFETY: the arrays live for the call and have the lengths that were compared.
    answered(|err| unsafe {
        call(
            count as u64,
            shards.weights.as_ptr(),
            shards.sets.as_ptr(),
            shards.secondary.map_or(std::ptr::null(), |marks| marks.as_ptr().cast()),
            shards.set_offsets.len() as u64 - 1,
            shards.set_offsets.as_ptr(),
            shards.holders.as_ptr(),
            rank_count,
            chosen.as_mut_ptr(),
            err,
        )
    })?;
    Ok(chosen)
}

/// What a plan describes: equal for equal entries in equal order on equal ranks, whatever their content digests are.
pub fn digest(plan: &Plan) -> Result<Digest> {
    // SAFETY: the handle lives for the call.
    Parts::new(unsafe { raw::plan_digest(plan.handle()) }?).digest(0)
}

/// XXH3-128 of the bytes in canonical order, as [`Entry::digest`] wants it.
pub fn content_digest(data: &[u8]) -> Result<Digest> {
    // SAFETY: the slice lives for the call.
    Parts::new(unsafe { raw::content_digest(data) }?).digest(0)
}
