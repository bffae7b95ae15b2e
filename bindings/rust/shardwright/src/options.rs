// SPDX-License-Identifier: Apache-2.0
//! Options of saves and loads, with the names and defaults that all languages share.

use crate::error::{Error, ErrorKind, Result};
use crate::text::{Blob, c_path};
use crate::{cancellation::Cancellation, limits::deadline_ns, progress::ProgressListener};
use shardwright_sys::ffi;
use std::ffi::{CString, c_char};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// An option whose values are words, the same in all languages.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $value:ident, $word:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[non_exhaustive]
        #[repr(i32)]
        pub enum $name {
            $($(#[$item_doc])* #[cfg_attr(feature = "serde", serde(rename = $word))] $item = ffi::$value,)*
        }

        impl $name {
            /// The word that stands for it in every language, e.g. on command lines and in configurations.
            pub fn word(self) -> &'static str {
                match self { $($name::$item => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }

        impl std::str::FromStr for $name {
            type Err = Error;

            /// From its word; INVALID_ARGUMENT for others, naming those that there are.
            fn from_str(word: &str) -> Result<$name> {
                match word {
                    $($word => Ok($name::$item),)*
                    _ => Err(unknown_word(stringify!($name), word, &[$($word),*])),
                }
            }
        }
    };
}

pub(crate) fn unknown_word(option: &str, found: &str, words: &[&str]) -> Error {
    let text = format!("{option} has no value {found:?}; its values are {}", words.join(", "));
    Error::new(ErrorKind::InvalidArgument, text).with_detail("found", found).with_detail("expected", &words.join(", "))
}

/// A struct of options: fields with their defaults (of their types where none is written), and a chained setter for each.
macro_rules! options {
    ($(#[$doc:meta])* pub struct $name:ident {
        $($(#[$field_doc:meta])* pub $field:ident: $type:ty $(= $default:expr)?,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
        #[non_exhaustive]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $crate::options::default_or!($($default)?),)* }
            }
        }

        impl $name {
            /// All defaults.
            pub fn new() -> Self {
                Self::default()
            }

            $(#[doc = concat!("Sets `", stringify!($field), "`, which the field of this name describes.")]
            #[must_use]
            pub fn $field(mut self, value: $type) -> Self {
                self.$field = value;
                self
            })*
        }
    };
}

macro_rules! default_or {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

pub(crate) use {choice, default_or, options};

choice! {
    /// What happens to a checkpoint that is at the path.
    Overwrite {
        /// Replaced atomically; the old one stays until the commit.
        #[default] Replace = SHW_OVERWRITE_REPLACE, "replace";
        /// ALREADY_EXISTS.
        Refuse = SHW_OVERWRITE_REFUSE, "refuse";
    }
}
choice! {
    /// What a finished save survives.
    Durability {
        /// A loss of power.
        #[default] Full = SHW_DURABILITY_FULL, "full";
        /// The end of the process only; the report says so.
        None = SHW_DURABILITY_NONE, "none";
    }
}
choice! {
    /// Who writes an entry that several ranks hold.
    Owner {
        /// Balanced by bytes.
        #[default] Balanced = SHW_OWNER_BALANCED, "balanced";
        /// Always the lowest rank.
        LowestRank = SHW_OWNER_LOWEST_RANK, "lowest_rank";
        /// As the original of the preset chooses.
        Exact = SHW_OWNER_EXACT, "exact";
        /// All of them, each its own chunk: for merges of descriptions, refused by saves.
        All = SHW_OWNER_ALL, "all";
    }
}
choice! {
    /// Which replicas are compared before one is written.
    VerifyReplicas {
        /// Objects and tensors up to 1 MiB.
        #[default] Auto = SHW_VERIFY_REPLICAS_AUTO, "auto";
        /// All.
        All = SHW_VERIFY_REPLICAS_ALL, "all";
        /// None.
        Off = SHW_VERIFY_REPLICAS_OFF, "off";
    }
}
choice! {
    /// Planner behaviour.
    Preset {
        /// That of this library.
        #[default] Native = SHW_PRESET_NATIVE, "native";
        /// HyperParallel's standard planners.
        Hyperparallel = SHW_PRESET_HYPERPARALLEL, "hyperparallel";
        /// torch DCP's default planners.
        Torch = SHW_PRESET_TORCH, "torch";
        /// Megatron-core's fully parallel save.
        Megatron = SHW_PRESET_MEGATRON, "megatron";
    }
}
choice! {
    /// Format of what is written, or expected.
    Format {
        /// Native when saving, what is recognised when loading.
        #[default] Auto = SHW_FORMAT_AUTO, "auto";
        /// Our own.
        Native = SHW_FORMAT_NATIVE, "native";
        /// torch.distributed.checkpoint.
        TorchDcp = SHW_FORMAT_TORCH_DCP, "torch_dcp";
        /// One file when the path ends in `.safetensors`, else files and their index.
        Safetensors = SHW_FORMAT_SAFETENSORS, "safetensors";
        /// Megatron-core's torch_dist.
        Megatron = SHW_FORMAT_MEGATRON, "megatron";
    }
}
choice! {
    /// Who holds an entry.
    Kind {
        /// Whole tensors and objects: replicated; sharded ones: sharded.
        #[default] Auto = SHW_KIND_AUTO, "auto";
        /// Equal on all ranks, stored once.
        Replicated = SHW_KIND_REPLICATED, "replicated";
        /// Each rank holds boxes.
        Sharded = SHW_KIND_SHARDED, "sharded";
        /// Each rank has its own, stored per rank.
        RankLocal = SHW_KIND_RANK_LOCAL, "rank_local";
    }
}
choice! {
    /// Wanted but not stored.
    Missing {
        /// NOT_FOUND with the nearest names.
        #[default] Error = SHW_MISSING_ERROR, "error";
        /// Listed in the report, the destination untouched.
        Report = SHW_MISSING_REPORT, "report";
    }
}
choice! {
    /// Stored but not wanted.
    Unexpected {
        /// Listed in the report.
        #[default] Report = SHW_UNEXPECTED_REPORT, "report";
        /// INVALID_ARGUMENT.
        Error = SHW_UNEXPECTED_ERROR, "error";
    }
}
choice! {
    /// Stored with another dtype than wanted.
    Cast {
        /// INVALID_ARGUMENT with both.
        #[default] Error = SHW_CAST_ERROR, "error";
        /// Converted and listed in the report.
        Allow = SHW_CAST_ALLOW, "allow";
    }
}
choice! {
    /// Stored with another global shape than wanted.
    Shape {
        /// INVALID_ARGUMENT with both.
        #[default] Error = SHW_SHAPE_ERROR, "error";
        /// Both anchored at the origin: cropped, or padded with zeros, and listed in the report.
        CropAndPad = SHW_SHAPE_CROP_AND_PAD, "crop_and_pad";
    }
}
choice! {
    /// Whether stored digests are checked.
    Verify {
        /// On every read.
        #[default] OnRead = SHW_VERIFY_ON_READ, "on_read";
        /// Not; the report says so.
        Off = SHW_VERIFY_OFF, "off";
    }
}
choice! {
    /// What all but the copy of a job runs at.
    Priority {
        /// As the threads of the caller.
        #[default] Normal = SHW_PRIORITY_NORMAL, "normal";
        /// On threads of its own that get about a tenth of a core that others want.
        Background = SHW_PRIORITY_BACKGROUND, "background";
    }
}
choice! {
    /// Where Megatron's format keeps the common state.
    Common {
        /// In `common.pt`, which every megatron-core reads.
        #[default] File = SHW_COMMON_FILE, "file";
        /// Among the data, as megatron-core from 0.19 on does.
        Object = SHW_COMMON_OBJECT, "object";
    }
}
choice! {
    /// Whether Megatron's format lists the SHA-256 of each file in `integrity.json`.
    Integrity {
        /// There is no list.
        #[default] Off = SHW_INTEGRITY_OFF, "off";
        /// With a list, from hashes that are made while files are written.
        Sha256 = SHW_INTEGRITY_SHA256, "sha256";
    }
}
choice! {
    /// Where large reads go, of storage that has direct I/O.
    ReadPath {
        /// What lies in the page cache is copied from there, the rest comes from the device round it.
        #[default] Auto = SHW_READ_PATH_AUTO, "auto";
        /// All from the device.
        Direct = SHW_READ_PATH_DIRECT, "direct";
        /// All through the page cache.
        Buffered = SHW_READ_PATH_BUFFERED, "buffered";
    }
}
choice! {
    /// Blocks that ranks of several machines want.
    Exchange {
        /// One rank reads a block and it goes to the others through the collective, where that ends first.
        #[default] Auto = SHW_EXCHANGE_AUTO, "auto";
        /// Each machine reads for itself.
        Off = SHW_EXCHANGE_OFF, "off";
        /// They are exchanged without measuring.
        Always = SHW_EXCHANGE_ALWAYS, "always";
    }
}
choice! {
    /// What is proved about boxes: of the chunks of a tensor, or of what fills a wanted box.
    Cover {
        /// Every element exactly once.
        #[default] Full = SHW_COVER_FULL, "full";
        /// No element twice.
        Disjoint = SHW_COVER_DISJOINT, "disjoint";
        /// Nothing but that each box lies inside its tensor.
        Off = SHW_COVER_OFF, "off";
    }
}
choice! {
    /// Order of matches, entries always in their order.
    MatchOrder {
        /// Wanted boxes in their order, for each the chunks by number.
        #[default] Wanted = SHW_MATCH_BY_WANTED, "wanted";
        /// As the sweep of torch 2.15 finds them.
        Sweep = SHW_MATCH_BY_SWEEP, "sweep";
    }
}
choice! {
    /// What entries describe.
    Described {
        /// What a rank holds.
        #[default] LocalSave = SHW_PLAN_LOCAL_SAVE, "local_save";
        /// What is stored: each box one chunk, without rank, world size and agreement.
        MergedSave = SHW_PLAN_MERGED_SAVE, "merged_save";
    }
}

/// Strictness of the names that a glob matches; the first match wins.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[non_exhaustive]
pub struct Strict {
    /// Pattern over names.
    pub glob: String,
    /// Wanted but not stored.
    #[cfg_attr(feature = "serde", serde(default))]
    pub missing: Missing,
    /// Stored but not wanted.
    #[cfg_attr(feature = "serde", serde(default))]
    pub unexpected: Unexpected,
    /// Stored with another dtype.
    #[cfg_attr(feature = "serde", serde(default))]
    pub cast: Cast,
    /// Stored with another global shape.
    #[cfg_attr(feature = "serde", serde(default))]
    pub shape: Shape,
}

impl Strict {
    /// The default strictness for the names that this pattern matches.
    pub fn new(glob: impl Into<String>) -> Strict {
        Strict { glob: glob.into(), ..Strict::default() }
    }
}

options! {
/// Options of a save.
///
/// ```
/// use shardwright::{Durability, Overwrite, SaveOptions};
/// let options = SaveOptions::new().overwrite(Overwrite::Refuse).durability(Durability::None);
/// assert!(options.digests);
/// ```
pub struct SaveOptions {
    /// What happens to a checkpoint that is there.
    pub overwrite: Overwrite = Overwrite::Replace,
    /// What the result survives.
    pub durability: Durability = Durability::Full,
    /// Digests of stored blocks; off only for measurements.
    pub digests: bool = true,
    /// Who writes replicas.
    pub owner: Owner = Owner::Balanced,
    /// Which replicas are compared.
    pub verify_replicas: VerifyReplicas = VerifyReplicas::Auto,
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
    pub preset: Preset = Preset::Native,
    /// Format.
    pub format: Format = Format::Auto,
    /// Bytes of tensors in one file of safetensors; 0 = 5e9. A larger tensor has a file for itself.
    pub max_shard_size: u64,
    /// Jobs copy nothing first and read the state's own memory until they are staged.
    pub hold: bool,
    /// What all but the copy of a job runs at.
    pub priority: Priority = Priority::Normal,
    /// Where Megatron's format keeps the common state.
    pub common: Common = Common::File,
    /// Whether Megatron's format lists the SHA-256 of each file; other formats refuse it.
    pub integrity: Integrity = Integrity::Off,
    /// Ends the call early; refused by jobs, which have [`Job::cancel`](crate::Job::cancel).
    #[cfg_attr(feature = "serde", serde(skip))]
    pub cancellation: Option<Cancellation>,
    /// Is told how far the call or job is; not by planners.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub progress: Option<ProgressListener>,
}
}

options! {
/// Options of a load.
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
    /// Where large reads go.
    pub read_path: ReadPath,
    /// Blocks that ranks of several machines want; all ranks say the same.
    pub exchange: Exchange,
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
    /// Ends the call early; refused by jobs, which have [`Job::cancel`](crate::Job::cancel).
    #[cfg_attr(feature = "serde", serde(skip))]
    pub cancellation: Option<Cancellation>,
    /// Is told how far the call or job is; not by planners.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub progress: Option<ProgressListener>,
}
}

options! {
/// Options of opening; they hold for all reads of the checkpoint.
pub struct OpenOptions {
    /// Whether digests are checked.
    pub verify: Verify,
    /// Where large reads go.
    pub read_path: ReadPath,
    /// The only format that is accepted.
    pub format: Format,
    /// Bytes of staging memory; 0 = that of the context.
    pub memory_budget: u64,
    /// Worker threads; 0 = all of the context.
    pub threads: u32,
    /// Limit of each call.
    pub deadline: Option<Duration>,
    /// Ends reads early.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub cancellation: Option<Cancellation>,
}
}

pub(crate) fn cancellation_handle(cancellation: &Option<Cancellation>) -> *mut ffi::shw_cancellation {
    cancellation.as_ref().map_or(std::ptr::null_mut(), Cancellation::handle)
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

pub(crate) fn text_pointer(text: &Option<CString>) -> *const c_char {
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
        c.max_shard_size = self.max_shard_size;
        c.hold = if self.hold { ffi::SHW_HOLD_ON } else { ffi::SHW_HOLD_OFF } as i32;
        c.priority = self.priority as i32;
        c.common = self.common as i32;
        c.integrity = self.integrity as i32;
        c.memory_budget = self.memory_budget;
        c.deadline_ns = deadline_ns(self.deadline);
        c.cancellation = cancellation_handle(&self.cancellation);
        (c.progress, c.progress_user) = ProgressListener::to_c(&self.progress);
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
        c.read_path = self.read_path as i32;
        c.exchange = self.exchange as i32;
        c.preset = self.preset as i32;
        c.format = self.format as i32;
        c.threads = self.threads;
        c.memory_budget = self.memory_budget;
        c.deadline_ns = deadline_ns(self.deadline);
        c.cancellation = cancellation_handle(&self.cancellation);
        (c.progress, c.progress_user) = ProgressListener::to_c(&self.progress);
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
        c.read_path = self.read_path as i32;
        c.format = self.format as i32;
        c.threads = self.threads;
        c.memory_budget = self.memory_budget;
        c.deadline_ns = deadline_ns(self.deadline);
        c.cancellation = cancellation_handle(&self.cancellation);
        c
    }
}
