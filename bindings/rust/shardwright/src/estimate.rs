// SPDX-License-Identifier: Apache-2.0
//! What a save or load of a described job would cost.

use crate::dtype::DType;
use crate::error::Result;
use crate::facts::{Facts, read};
use crate::options::Kind;
use std::time::Duration;

/// What a save or load of a described job would cost. All but the time is computed, not estimated.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Estimate {
    /// Whether it is a load.
    pub is_load: bool,
    /// Ranks that save or load.
    pub rank_count: i32,
    /// The checkpoint.
    pub stored: Stored,
    /// Bytes of each rank's file without its index, or bytes that it reads: whole digest blocks.
    pub bytes: Spread,
    /// Those of them that are read only to check digests.
    pub over_bytes: Spread,
    /// What comes to each rank of a load through the memory of its machine; 0 of a save, as the next two.
    pub shared_bytes: Spread,
    /// What comes to each rank from other machines.
    pub received_bytes: Spread,
    /// What each rank sends to other machines.
    pub sent_bytes: Spread,
    /// Chunks and objects that each rank writes or reads.
    pub operations: Spread,
    /// Files that each rank writes or opens.
    pub files: Spread,
    /// Each rank's own state.
    pub held_bytes: Spread,
    /// Staging memory of each rank.
    pub staging_bytes: Spread,
    /// State and staging, and on rank 0 of a save the plans of all ranks.
    pub peak_bytes: Spread,
    /// Plans of all ranks of a save; 0 of a load.
    pub plan_bytes: u64,
    /// None when no bandwidth was given.
    pub time: Option<EstimatedTime>,
    /// The same numbers rank by rank.
    pub per_rank: PerRank,
    /// Groups of equal tensors.
    pub tensors: Vec<TensorGroup>,
    /// All of it as JSON text with `"schema": 1`.
    pub json: String,
}

/// What the checkpoint of an [`Estimate`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stored {
    /// Tensors.
    pub tensor_count: u64,
    /// Byte objects.
    pub object_count: u64,
    /// Chunks.
    pub chunk_count: u64,
    /// Data files.
    pub file_count: u64,
    /// Payload in bytes.
    pub byte_size: u64,
}

/// A number of each rank, over all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Spread {
    /// The least.
    pub min: u64,
    /// The one in the middle.
    pub median: u64,
    /// The greatest.
    pub max: u64,
    /// The first rank that has the greatest.
    pub max_rank: i32,
    /// Their sum.
    pub total: u64,
}

/// The time, from the bandwidth that the options gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EstimatedTime {
    /// The slower of the busiest rank and all ranks together.
    pub span: Duration,
    /// Whether the busiest rank is what takes longest, else what all share.
    pub is_limited_by_rank: bool,
}

/// Numbers rank by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct PerRank {
    /// Bytes that each rank writes or reads.
    pub bytes: Vec<u64>,
    /// Bytes that each rank reads only to check digests.
    pub over_bytes: Vec<u64>,
    /// Bytes that come to each rank of a load through the memory of its machine; empty of a save, as the next two.
    pub shared_bytes: Vec<u64>,
    /// Bytes that come to each rank from other machines.
    pub received_bytes: Vec<u64>,
    /// Bytes that each rank sends to other machines.
    pub sent_bytes: Vec<u64>,
    /// Chunks and objects that each rank writes or reads.
    pub operations: Vec<u64>,
    /// Files that each rank writes or opens.
    pub files: Vec<u64>,
    /// Each rank's own state.
    pub held_bytes: Vec<u64>,
    /// Most memory of each rank: state, staging and plans.
    pub peak_bytes: Vec<u64>,
}

/// Tensors that differ only by their names and places.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TensorGroup {
    /// A pattern of their names.
    pub names: String,
    /// Name of the first.
    pub first: String,
    /// How many.
    pub count: u64,
    /// Element type.
    pub dtype: DType,
    /// Who holds them.
    pub kind: Kind,
    /// Extents of each.
    pub shape: Vec<i64>,
    /// In words.
    pub layout: String,
    /// Bytes of each.
    pub byte_size: u64,
    /// Chunks of each.
    pub chunk_count: u64,
    /// Bytes of its smallest chunk.
    pub smallest_chunk_bytes: u64,
    /// Bytes of its largest chunk.
    pub largest_chunk_bytes: u64,
    /// Ranks that hold a chunk, at least.
    pub fewest_holders: u64,
    /// Ranks that hold a chunk, at most.
    pub most_holders: u64,
    /// Those of the first tensor, when the options ask for them; else empty.
    pub chunks: Vec<EstimatedChunk>,
}

/// One chunk of the first tensor of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EstimatedChunk {
    /// Where it begins in the tensor, by dimension.
    pub offsets: Vec<i64>,
    /// Its extents.
    pub sizes: Vec<i64>,
    /// Rank that writes it; of a load the first that holds it.
    pub rank: i32,
    /// Number of ranks that hold it.
    pub holders: u64,
}

impl Estimate {
    pub(crate) fn of(json: String) -> Result<Estimate> {
        let value = read(&json)?;
        let facts = Facts(&value);
        let is_load = facts.text("command") == "load";
        let spread = |key| Spread::of(facts.object(key));
        Ok(Estimate {
            is_load,
            rank_count: facts.rank("ranks"),
            stored: Stored::of(facts.object("stored")),
            bytes: spread("bytes"),
            over_bytes: spread("over_bytes"),
            shared_bytes: spread("shared_bytes"),
            received_bytes: spread("received_bytes"),
            sent_bytes: spread("sent_bytes"),
            operations: spread(operations(is_load)),
            files: spread("files"),
            held_bytes: spread("held_bytes"),
            staging_bytes: spread("staging_bytes"),
            peak_bytes: spread("peak_bytes"),
            plan_bytes: facts.number("plan_bytes"),
            time: facts.has("time").then(|| EstimatedTime::of(facts.object("time"))),
            per_rank: PerRank::of(facts.object("per_rank"), is_load),
            tensors: facts.list("tensors").map(TensorGroup::of).collect::<Result<_>>()?,
            json,
        })
    }
}

fn operations(is_load: bool) -> &'static str {
    if is_load { "reads" } else { "writes" }
}

impl Stored {
    fn of(facts: Facts) -> Stored {
        Stored {
            tensor_count: facts.number("tensors"),
            object_count: facts.number("objects"),
            chunk_count: facts.number("chunks"),
            file_count: facts.number("files"),
            byte_size: facts.number("bytes"),
        }
    }
}

impl Spread {
    fn of(facts: Facts) -> Spread {
        Spread {
            min: facts.number("min"),
            median: facts.number("median"),
            max: facts.number("max"),
            max_rank: facts.rank("max_rank"),
            total: facts.number("total"),
        }
    }
}

impl EstimatedTime {
    fn of(facts: Facts) -> EstimatedTime {
        let seconds = Duration::try_from_secs_f64(facts.real("seconds"));
        EstimatedTime { span: seconds.unwrap_or(Duration::MAX), is_limited_by_rank: facts.text("limit") == "rank" }
    }
}

impl PerRank {
    fn of(facts: Facts, is_load: bool) -> PerRank {
        PerRank {
            bytes: facts.numbers("bytes"),
            over_bytes: facts.numbers("over_bytes"),
            shared_bytes: facts.numbers("shared_bytes"),
            received_bytes: facts.numbers("received_bytes"),
            sent_bytes: facts.numbers("sent_bytes"),
            operations: facts.numbers(operations(is_load)),
            files: facts.numbers("files"),
            held_bytes: facts.numbers("held_bytes"),
            peak_bytes: facts.numbers("peak_bytes"),
        }
    }
}

impl TensorGroup {
    fn of(facts: Facts) -> Result<TensorGroup> {
        let shape: Vec<i64> = facts.numbers("shape").into_iter().map(|extent| extent as i64).collect();
        Ok(TensorGroup {
            names: facts.text("names"),
            first: facts.text("first"),
            count: facts.number("count"),
            dtype: facts.dtype("dtype")?,
            kind: facts.word("kind")?,
            layout: facts.text("layout"),
            byte_size: facts.number("bytes"),
            chunk_count: facts.number("chunks"),
            smallest_chunk_bytes: facts.number("smallest_chunk_bytes"),
            largest_chunk_bytes: facts.number("largest_chunk_bytes"),
            fewest_holders: facts.number("fewest_holders"),
            most_holders: facts.number("most_holders"),
            chunks: chunks_of(facts.object("chunk_list"), &shape),
            shape,
        })
    }
}

/// From columns of the dimensions that are cut, one value per chunk; the others are whole.
fn chunks_of(list: Facts, shape: &[i64]) -> Vec<EstimatedChunk> {
    let dims = list.numbers("dims");
    let columns = |key| -> Vec<Vec<u64>> { list.list(key).map(Facts::values).collect() };
    let (begins, extents) = (columns("offsets"), columns("sizes"));
    let (ranks, holders) = (list.numbers("ranks"), list.numbers("holders"));
    let chunk = |i: usize| {
        let (mut offsets, mut sizes) = (vec![0; shape.len()], shape.to_vec());
        for (column, &dim) in dims.iter().enumerate() {
            offsets[dim as usize] = begins[column][i] as i64;
            sizes[dim as usize] = extents[column][i] as i64;
        }
        EstimatedChunk { offsets, sizes, rank: ranks[i] as i32, holders: holders[i] }
    };
    (0..ranks.len()).map(chunk).collect()
}
