// SPDX-License-Identifier: Apache-2.0
//! What is in a checkpoint, and which ones a run has.

use crate::checkpoint::TensorInfo;
use crate::dtype::DType;
use crate::error::Result;
use crate::facts::{Facts, read};
use crate::options::Kind;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// What is in a checkpoint.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CheckpointInfo {
    /// E.g. "native".
    pub format: String,
    /// Id of the save that made it; empty when the format has none.
    pub generation: String,
    /// Ranks that wrote it.
    pub world_size: i32,
    /// When it was saved; None when the format does not say.
    pub created: Option<SystemTime>,
    /// Whether stored blocks have digests.
    pub has_digests: bool,
    /// Text that was saved with it, by key.
    pub metadata: BTreeMap<String, String>,
    /// What is worth knowing about it, one sentence each.
    pub notes: Vec<String>,
    /// Chunks of all tensors.
    pub chunk_count: u64,
    /// Packed bytes of all tensors.
    pub tensor_bytes: u64,
    /// Bytes of all byte objects.
    pub object_bytes: u64,
    /// Bytes of all data files.
    pub file_bytes: u64,
    /// Bytes of the tensors of each dtype.
    pub bytes_by_dtype: Vec<(DType, u64)>,
    /// The data files.
    pub files: Vec<FileInfo>,
    /// The tensors in stored order, of rank_local ones those of all ranks.
    pub tensors: Vec<TensorInfo>,
    /// The byte objects in stored order.
    pub objects: Vec<ObjectInfo>,
    /// All of it as JSON text with `"schema": 1`.
    pub json: String,
}

/// One data file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct FileInfo {
    /// Relative to the checkpoint.
    pub key: String,
    /// Its size in bytes.
    pub byte_size: u64,
    /// Rank that wrote it; -1 when files are not of ranks.
    pub rank: i32,
}

/// One byte object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ObjectInfo {
    /// Its name.
    pub name: String,
    /// Nested path as JSON array text; empty = flat.
    pub path: String,
    /// E.g. "application/json".
    pub content_type: String,
    /// Who holds it.
    pub kind: Kind,
    /// Owner of a rank_local object, else -1.
    pub rank: i32,
    /// Its size in bytes.
    pub byte_size: u64,
}

impl CheckpointInfo {
    pub(crate) fn of(
        json: String,
        tensors: Vec<TensorInfo>,
        metadata: BTreeMap<String, String>,
    ) -> Result<CheckpointInfo> {
        let value = read(&json)?;
        let facts = Facts(&value);
        let bytes = facts.object("bytes");
        let created = facts.number("created_unix_ns");
        Ok(CheckpointInfo {
            format: facts.text("format"),
            generation: facts.text("generation"),
            world_size: facts.rank("world_size"),
            created: (created != 0).then(|| SystemTime::UNIX_EPOCH + Duration::from_nanos(created)),
            has_digests: facts.flag("digests"),
            metadata,
            notes: facts.texts("notes"),
            chunk_count: facts.object("counts").number("chunks"),
            tensor_bytes: bytes.number("tensors"),
            object_bytes: bytes.number("objects"),
            file_bytes: bytes.number("files"),
            bytes_by_dtype: facts
                .object("bytes_by_dtype")
                .pairs()
                .map(|(name, bytes)| Ok((DType::from_name(name)?, bytes.0.as_u64().unwrap_or_default())))
                .collect::<Result<_>>()?,
            files: facts.list("files").map(FileInfo::of).collect(),
            tensors,
            objects: facts.list("objects").map(ObjectInfo::of).collect::<Result<_>>()?,
            json,
        })
    }
}

impl FileInfo {
    fn of(facts: Facts) -> FileInfo {
        FileInfo { key: facts.text("key"), byte_size: facts.number("bytes"), rank: facts.rank("rank") }
    }
}

impl ObjectInfo {
    fn of(facts: Facts) -> Result<ObjectInfo> {
        Ok(ObjectInfo {
            name: facts.text("name"),
            path: facts.text("path"),
            content_type: facts.text("content_type"),
            kind: facts.word("kind")?,
            rank: facts.rank("rank"),
            byte_size: facts.number("bytes"),
        })
    }
}

/// The checkpoints of a run directory, ordered by their number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Steps {
    /// All of them.
    pub steps: Vec<Step>,
    /// The newest one that is whole; None when none is.
    pub newest_whole: Option<Step>,
    /// What Megatron's latest_checkpointed_iteration.txt says; empty without one.
    pub tracker: String,
    /// The one of these that it names; None when it names none.
    pub tracked: Option<Step>,
}

/// One checkpoint of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Step {
    /// Of its folder, e.g. "step-00000100".
    pub name: String,
    /// E.g. 100.
    pub number: u64,
    /// Whether it can be loaded, as far as its structure says.
    pub completeness: Completeness,
    /// Why it is not whole; empty when it is.
    pub message: String,
}

/// How much of a checkpoint there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Completeness {
    /// All of it.
    Whole,
    /// A save that has not committed, or was stopped before.
    Uncommitted,
    /// Something that was committed is missing or damaged.
    Damaged,
}

impl Steps {
    pub(crate) fn of(json: &str) -> Result<Steps> {
        let value = read(json)?;
        let facts = Facts(&value);
        let steps: Vec<Step> = facts.list("steps").map(Step::of).collect();
        let named = |fact: &str| {
            let name = facts.text(fact);
            steps.iter().find(|step| step.name == name).cloned()
        };
        let (newest_whole, tracked) = (named("newest_whole"), named("tracked"));
        Ok(Steps { steps, newest_whole, tracker: facts.text("tracker"), tracked })
    }
}

impl Step {
    fn of(facts: Facts) -> Step {
        Step {
            name: facts.text("name"),
            number: facts.number("step"),
            completeness: match &facts.text("state")[..] {
                "whole" => Completeness::Whole,
                "uncommitted" => Completeness::Uncommitted,
                _ => Completeness::Damaged,
            },
            message: facts.text("message"),
        }
    }
}
