// SPDX-License-Identifier: Apache-2.0
//! Options of saves and loads, with the names and defaults that all languages share.

use crate::error::Result;
use crate::text::{Blob, c_path};
use shardwright_sys::ffi;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::path::PathBuf;
use std::time::Duration;

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $value:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(i32)]
        pub enum $name { $($(#[$item_doc])* $item = ffi::$value,)* }
    };
}

choice! {
    /// What happens to a checkpoint that is at the path.
    Overwrite {
        /// Replaced atomically; the old one stays until the commit.
        #[default] Replace = SHW_OVERWRITE_REPLACE,
        /// ALREADY_EXISTS.
        Refuse = SHW_OVERWRITE_REFUSE,
    }
}
choice! {
    /// What a finished save survives.
    Durability {
        /// A loss of power.
        #[default] Full = SHW_DURABILITY_FULL,
        /// The end of the process only; the report says so.
        None = SHW_DURABILITY_NONE,
    }
}
choice! {
    /// Who writes an entry that several ranks hold.
    Owner {
        /// Balanced by bytes.
        #[default] Balanced = SHW_OWNER_BALANCED,
        /// Always the lowest rank.
        LowestRank = SHW_OWNER_LOWEST_RANK,
        /// As the original of the preset chooses.
        Exact = SHW_OWNER_EXACT,
        /// All of them, each its own chunk: for merges of descriptions, refused by saves.
        All = SHW_OWNER_ALL,
    }
}
choice! {
    /// Which replicas are compared before one is written.
    VerifyReplicas {
        /// Objects and tensors up to 1 MiB.
        #[default] Auto = SHW_VERIFY_REPLICAS_AUTO,
        /// All.
        All = SHW_VERIFY_REPLICAS_ALL,
        /// None.
        Off = SHW_VERIFY_REPLICAS_OFF,
    }
}
choice! {
    /// Planner behaviour.
    Preset {
        /// HyperParallel's standard planner.
        #[default] Standard = SHW_PRESET_STANDARD,
        /// torch DCP's default planner.
        Default = SHW_PRESET_DEFAULT,
        /// Megatron's torch_dist strategies.
        Megatron = SHW_PRESET_MEGATRON,
    }
}
choice! {
    /// Format of what is written, or expected.
    Format {
        /// Native when saving, what is recognised when loading.
        #[default] Auto = SHW_FORMAT_AUTO,
        /// Our own.
        Native = SHW_FORMAT_NATIVE,
        /// torch.distributed.checkpoint.
        TorchDcp = SHW_FORMAT_TORCH_DCP,
    }
}
choice! {
    /// Who holds an entry.
    Kind {
        /// Whole tensors and objects: replicated; sharded ones: sharded.
        #[default] Auto = SHW_KIND_AUTO,
        /// Equal on all ranks, stored once.
        Replicated = SHW_KIND_REPLICATED,
        /// Each rank holds boxes.
        Sharded = SHW_KIND_SHARDED,
        /// Each rank has its own, stored per rank.
        RankLocal = SHW_KIND_RANK_LOCAL,
    }
}
choice! {
    /// Wanted but not stored.
    Missing {
        /// NOT_FOUND with the nearest names.
        #[default] Error = SHW_MISSING_ERROR,
        /// Listed in the report, the destination untouched.
        Report = SHW_MISSING_REPORT,
    }
}
choice! {
    /// Stored but not wanted.
    Unexpected {
        /// Listed in the report.
        #[default] Report = SHW_UNEXPECTED_REPORT,
        /// INVALID_ARGUMENT.
        Error = SHW_UNEXPECTED_ERROR,
    }
}
choice! {
    /// Stored with another dtype than wanted.
    Cast {
        /// INVALID_ARGUMENT with both.
        #[default] Error = SHW_CAST_ERROR,
        /// Converted and listed in the report.
        Allow = SHW_CAST_ALLOW,
    }
}
choice! {
    /// Stored with another global shape than wanted.
    Shape {
        /// INVALID_ARGUMENT with both.
        #[default] Error = SHW_SHAPE_ERROR,
        /// Both anchored at the origin: cropped, or padded with zeros, and listed in the report.
        CropAndPad = SHW_SHAPE_CROP_AND_PAD,
    }
}
choice! {
    /// Whether stored digests are checked.
    Verify {
        /// On every read.
        #[default] OnRead = SHW_VERIFY_ON_READ,
        /// Not; the report says so.
        Off = SHW_VERIFY_OFF,
    }
}
choice! {
    /// What is proved about boxes: of the chunks of a tensor, or of what fills a wanted box.
    Cover {
        /// Every element exactly once.
        #[default] Full = SHW_COVER_FULL,
        /// No element twice.
        Disjoint = SHW_COVER_DISJOINT,
        /// Nothing but that each box lies inside its tensor.
        Off = SHW_COVER_OFF,
    }
}
choice! {
    /// Order of matches, entries always in their order.
    MatchOrder {
        /// Wanted boxes in their order, for each the chunks by number.
        #[default] Wanted = SHW_MATCH_BY_WANTED,
        /// As the sweep of torch 2.15 finds them.
        Sweep = SHW_MATCH_BY_SWEEP,
    }
}
choice! {
    /// What entries describe.
    Described {
        /// What a rank holds.
        #[default] LocalSave = SHW_PLAN_LOCAL_SAVE,
        /// What is stored: each box one chunk, without rank, world size and agreement.
        MergedSave = SHW_PLAN_MERGED_SAVE,
    }
}

/// Strictness of the names that a glob matches; the first match wins.
#[derive(Clone, Debug)]
pub struct Strict {
    /// Pattern over names.
    pub glob: String,
    /// Wanted but not stored.
    pub missing: Missing,
    /// Stored but not wanted.
    pub unexpected: Unexpected,
    /// Stored with another dtype.
    pub cast: Cast,
    /// Stored with another global shape.
    pub shape: Shape,
}

/// Options of a save.
#[derive(Clone, Debug)]
pub struct SaveOptions {
    /// What happens to a checkpoint that is there.
    pub overwrite: Overwrite,
    /// What the result survives.
    pub durability: Durability,
    /// Digests of stored blocks; off only for measurements.
    pub digests: bool,
    /// Who writes replicas.
    pub owner: Owner,
    /// Which replicas are compared.
    pub verify_replicas: VerifyReplicas,
    /// Kind by glob over names, first match wins.
    pub kind: Vec<(String, Kind)>,
    /// Bytes of staging memory; 0 = 256 MiB, or the bytes to stage when asynchronous.
    pub memory_budget: u64,
    /// Worker threads; 0 = all of the context.
    pub threads: u32,
    /// Limit of the whole call.
    pub deadline: Option<Duration>,
    /// Generations kept at the path after the commit; 0 = 1.
    pub keep_generations: u32,
    /// Mode of new files; 0 = 0666 and the umask.
    pub file_mode: u32,
    /// Stored in the manifest and shown by info.
    pub metadata: BTreeMap<String, String>,
    /// Chrome trace of the call.
    pub trace_path: Option<PathBuf>,
    /// Planner behaviour.
    pub preset: Preset,
    /// Format.
    pub format: Format,
}

impl Default for SaveOptions {
    fn default() -> Self {
        SaveOptions {
            overwrite: Overwrite::Replace,
            durability: Durability::Full,
            digests: true,
            owner: Owner::Balanced,
            verify_replicas: VerifyReplicas::Auto,
            kind: Vec::new(),
            memory_budget: 0,
            threads: 0,
            deadline: None,
            keep_generations: 0,
            file_mode: 0,
            metadata: BTreeMap::new(),
            trace_path: None,
            preset: Preset::Standard,
            format: Format::Auto,
        }
    }
}

/// Options of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Wanted but not stored.
    pub missing: Missing,
    /// Stored but not wanted.
    pub unexpected: Unexpected,
    /// Stored with another dtype.
    pub cast: Cast,
    /// Stored with another global shape.
    pub shape: Shape,
    /// Strictness by glob over names.
    pub strict: Vec<Strict>,
    /// Whether digests are checked.
    pub verify: Verify,
    /// Bytes of staging memory; 0 = that of the context.
    pub memory_budget: u64,
    /// Worker threads; 0 = all of the context.
    pub threads: u32,
    /// Limit of the whole call.
    pub deadline: Option<Duration>,
    /// Chrome trace of the call.
    pub trace_path: Option<PathBuf>,
    /// Planner behaviour.
    pub preset: Preset,
    /// Format.
    pub format: Format,
}

/// Options of opening; they hold for all reads of the checkpoint.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Whether digests are checked.
    pub verify: Verify,
    /// The only format that is accepted.
    pub format: Format,
    /// Bytes of staging memory; 0 = that of the context.
    pub memory_budget: u64,
    /// Worker threads; 0 = all of the context.
    pub threads: u32,
    /// Limit of each call.
    pub deadline: Option<Duration>,
}

/// Nanoseconds of an optional span: none = no limit.
pub(crate) fn span_ns(span: Option<Duration>) -> i64 {
    span.map_or(-1, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

/// The deadline field: 0 = the library's default.
fn deadline_ns(deadline: Option<Duration>) -> i64 {
    deadline.map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX).max(1))
}

/// A C options struct and what its pointers point to.
pub(crate) struct CSaveOptions {
    pub options: ffi::shw_save_options,
    _globs: Blob,
    _kinds: Vec<i32>,
    _metadata: Blob,
    _trace: Option<CString>,
}

pub(crate) struct CLoadOptions {
    pub options: ffi::shw_load_options,
    _globs: Blob,
    _rules: Vec<i32>,
    _shapes: Vec<i32>,
    _trace: Option<CString>,
}

fn text_pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr())
}

impl SaveOptions {
    pub(crate) fn to_c(&self) -> Result<CSaveOptions> {
        let globs = Blob::of(self.kind.iter().map(|(g, _)| g));
        let kinds: Vec<i32> = self.kind.iter().map(|(_, k)| *k as i32).collect();
        let metadata = Blob::of(self.metadata.iter().flat_map(|(k, v)| [k, v]));
        let trace = self.trace_path.as_deref().map(c_path).transpose()?;
        // SAFETY: a plain struct for which all zero is valid.
        let mut c: ffi::shw_save_options = unsafe { std::mem::zeroed() };
        c.struct_size = size_of::<ffi::shw_save_options>() as u32;
        c.overwrite = self.overwrite as i32;
        c.durability = self.durability as i32;
        c.digests = if self.digests { ffi::SHW_DIGESTS_ON } else { ffi::SHW_DIGESTS_OFF };
        c.owner = self.owner as i32;
        c.verify_replicas = self.verify_replicas as i32;
        c.preset = self.preset as i32;
        c.format = self.format as i32;
        c.threads = self.threads;
        c.file_mode = self.file_mode;
        c.keep_generations = self.keep_generations;
        c.memory_budget = self.memory_budget;
        c.deadline_ns = deadline_ns(self.deadline);
        c.trace_path = text_pointer(&trace);
        c.kind_globs = globs.bytes.as_ptr().cast();
        c.kind_offsets = globs.offsets.as_ptr();
        c.kind_values = kinds.as_ptr();
        c.kind_count = globs.count();
        c.metadata = metadata.bytes.as_ptr().cast();
        c.metadata_offsets = metadata.offsets.as_ptr();
        c.metadata_count = metadata.count() / 2;
        Ok(CSaveOptions { options: c, _globs: globs, _kinds: kinds, _metadata: metadata, _trace: trace })
    }
}

impl LoadOptions {
    pub(crate) fn to_c(&self) -> Result<CLoadOptions> {
        let globs = Blob::of(self.strict.iter().map(|s| &s.glob));
        let rules: Vec<i32> =
            self.strict.iter().flat_map(|s| [s.missing as i32, s.unexpected as i32, s.cast as i32]).collect();
        let shapes: Vec<i32> = self.strict.iter().map(|s| s.shape as i32).collect();
        let trace = self.trace_path.as_deref().map(c_path).transpose()?;
        // SAFETY: a plain struct for which all zero is valid.
        let mut c: ffi::shw_load_options = unsafe { std::mem::zeroed() };
        c.struct_size = size_of::<ffi::shw_load_options>() as u32;
        c.missing = self.missing as i32;
        c.unexpected = self.unexpected as i32;
        c.cast = self.cast as i32;
        c.shape = self.shape as i32;
        c.verify = self.verify as i32;
        c.preset = self.preset as i32;
        c.format = self.format as i32;
        c.threads = self.threads;
        c.memory_budget = self.memory_budget;
        c.deadline_ns = deadline_ns(self.deadline);
        c.trace_path = text_pointer(&trace);
        c.strict_globs = globs.bytes.as_ptr().cast();
        c.strict_offsets = globs.offsets.as_ptr();
        c.strict_rules = rules.as_ptr();
        c.strict_shapes = shapes.as_ptr();
        c.strict_count = globs.count();
        Ok(CLoadOptions { options: c, _globs: globs, _rules: rules, _shapes: shapes, _trace: trace })
    }
}

impl OpenOptions {
    pub(crate) fn to_c(&self) -> ffi::shw_checkpoint_options {
        // SAFETY: a plain struct for which all zero is valid.
        let mut c: ffi::shw_checkpoint_options = unsafe { std::mem::zeroed() };
        c.struct_size = size_of::<ffi::shw_checkpoint_options>() as u32;
        c.verify = self.verify as i32;
        c.format = self.format as i32;
        c.threads = self.threads;
        c.memory_budget = self.memory_budget;
        c.deadline_ns = deadline_ns(self.deadline);
        c
    }
}
