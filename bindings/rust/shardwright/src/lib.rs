// SPDX-License-Identifier: Apache-2.0
//! Saves, loads and reshards sharded training checkpoints, from Rust.
//!
//! ```no_run
//! use shardwright::{LoadOptions, SaveOptions, State};
//!
//! let weights = vec![1.0f32, 2.0, 3.0, 4.0];
//! let mut state = State::new();
//! state.add("model.weight", &[2, 2], &weights)?;
//! state.add_json("step", "100")?;
//! shardwright::save(&state, "run/step-00000100", &SaveOptions::default())?;
//!
//! let mut target = vec![0.0f32; 4];
//! let mut into = State::new();
//! into.add_mut("model.weight", &[2, 2], &mut target)?;
//! into.add_json("step", "null")?;
//! shardwright::load_into(&mut into, "run/step-00000100", &LoadOptions::default())?;
//! # Ok::<(), shardwright::Error>(())
//! ```
//!
//! Every failure is an [`Error`] with the status code, the message and the details of the C library. Blocking calls
//! borrow slices, whole tensors and shards of larger ones; jobs take states that own their memory (`State<'static>`) and give them back. Many tensors enter a state
//! in one call of the library by [`State::add_all`] or a [`TensorBatch`]. Hosts with tensors, transport and files of their
//! own use the planner alone: [`planning`], and [`global_plan`] where layouts say what each rank holds. Those that keep an
//! index of torch's write items alone: [`torch_items`].
//!
//! Feature `half`: its `f16` and `bf16` are elements. Feature `serde`: options, infos and summaries are data.
#![deny(missing_docs)]
#![deny(missing_debug_implementations)]

mod cancellation;
mod checkpoint;
mod collective;
mod context;
mod convert;
mod dtype;
mod entry_batch;
mod error;
mod estimate;
mod facts;
pub mod global_plan;
mod grid;
mod host_storage;
pub mod hsdp;
mod info;
mod job;
mod job_description;
mod layout;
mod limits;
mod load_exchange;
mod mapping;
mod megatron;
mod memory;
mod object_batch;
mod object_key;
mod object_reader;
mod options;
mod planner;
pub mod planning;
mod progress;
mod report;
mod reshard;
mod state;
mod storage;
mod tensor;
mod tensor_batch;
mod text;
pub mod torch_items;
mod workflow;

pub use cancellation::Cancellation;
pub use checkpoint::{Checkpoint, ChunkInfo, DigestAlgorithm, Object, TensorInfo};
pub use collective::{Aborter, Collective, Gathered, HostCollective, Parts, Reduction, thread_collectives};
pub use context::{Context, ContextBuilder, LogLevel};
pub use convert::{ConvertOptions, convert};
pub use dtype::{DType, Element};
pub use error::{Error, ErrorKind, Result};
pub use estimate::{Estimate, EstimatedChunk, EstimatedTime, PerRank, Spread, Stored, TensorGroup};
pub use grid::{FlatEntry, GridShard, flat_entry_pieces, overlapping_parts};
pub use host_storage::{Capabilities, CommitCondition, HostStorage, LockMode, ObjectStat, OpenMode, StorageLock};
pub use info::{CheckpointInfo, Completeness, FileInfo, ObjectInfo, Step, Steps};
pub use job::{Finished, Job, JobState};
pub use job_description::{EstimateOptions, JobDescription, NodeExchange};
pub use layout::{Layout, Piece, Placement};
pub use load_exchange::{ExchangeRound, LoadExchange, exchange_plans};
pub use mapping::Mapping;
pub use object_batch::{ObjectBatch, ObjectSpec};
pub use object_key::ObjectKey;
pub use object_reader::ObjectReader;
pub use options::{
    Cast, Common, Cover, Durability, Exchange, Format, Integrity, Kind, LoadOptions, MatchOrder, Missing, OpenOptions,
    Overwrite, Owner, Preset, Priority, ReadPath, SaveOptions, Shape, Strict, Unexpected, Verify, VerifyReplicas,
};
pub use planner::{LoadPlanner, Plan, SavePlanner};
pub use progress::{Progress, ProgressListener};
pub use report::{Report, Summary};
pub use reshard::{OptimizerLayout, ReshardOptions, reshard};
pub use state::State;
pub use storage::Storage;
pub use tensor::Tensor;
pub use tensor_batch::{Grid, RawMemory, Shard, TensorBatch, TensorSpec};
pub use workflow::{
    GarbageOptions, Loaded, Location, RemoveOptions, clean_pickles, collect_garbage, latest, list_steps, load, load_all,
    load_async, load_async_at, load_at, load_into, prepare, prepare_at, remove_entries, save, save_async, save_async_at,
    save_at, scan_pickles, version,
};
