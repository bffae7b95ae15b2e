// SPDX-License-Identifier: Apache-2.0
//! Hybrid sharded data parallel training: parameters are cut over ranks, gathered unit by unit where they are used, and
//! their gradients summed in rank order, in every bit like one process would.
//!
//! An [`Hsdp`] has the units of one rank over a [`Mesh`] with a [`Communicator`] for each axis. All calls come in the same
//! order on all ranks. A rank here is a thread:
//!
//! ```no_run
//! use shardwright::hsdp::{Hsdp, HsdpOptions, Lane, Mesh, Param, UnitOptions, thread_communicators};
//!
//! fn train(end: shardwright::hsdp::Communicator, rank: i32) -> shardwright::Result<()> {
//!     let mut mesh = Mesh::new(&[2], rank)?;
//!     mesh.set_communicator(0, Lane::Gather, &end)?;
//!     let mut hsdp = Hsdp::new(&mesh, &HsdpOptions::default())?;
//!     let weight = vec![1.0f32; 12];
//!     let layer = hsdp.add_unit("layer", &UnitOptions::default(), &[Param::new("weight", &[4, 3], &weight)])?;
//!     hsdp.pre_forward(layer)?;
//!     let total: f32 = hsdp.full::<f32>(layer, 0)?.iter().sum(); // the whole parameter
//!     hsdp.post_forward(layer)?;
//!     hsdp.pre_backward(layer)?;
//!     hsdp.add_grads(layer, &[(0, &[total; 12][..])])?;
//!     hsdp.post_backward(layer)?;
//!     hsdp.finalize_backward()?;
//!     hsdp.update::<f32>(layer, 0, |param, grad| {
//!         param.iter_mut().zip(grad).for_each(|(p, g)| *p -= 0.01 * g) // this rank's rows
//!     })?;
//!     hsdp.zero_grads()
//! }
//!
//! let ends = thread_communicators(2)?;
//! std::thread::scope(|threads| {
//!     for (rank, end) in ends.into_iter().enumerate() {
//!         threads.spawn(move || train(end, rank as i32).unwrap());
//!     }
//! });
//! # Ok::<(), shardwright::Error>(())
//! ```
//!
//! Memory of the library is seen as slices that the borrow checker ends before the next change: whole parameters while a unit is
//! unsharded ([`Hsdp::full`]), the part of this rank ([`Hsdp::local`]) and its gradient ([`Hsdp::grad`]). On a [`Device`] with memory
//! of its own there are addresses instead ([`Hsdp::memory`]); shards and gradients of units that offload are slices there, too. What
//! the host has on that device is handed in by its address ([`DeviceTensor`]).

mod allocator;
mod background;
mod communicator;
mod device;
mod device_entries;
mod device_tensor;
mod estimate;
mod gradients;
mod host_communicator;
mod mesh;
mod options;
mod settings;
mod units;
mod work;

pub use allocator::{ALIGNMENT, HostAllocator};
pub use background::{FinishedSave, SaveJob};
pub use communicator::{Communicator, delayed, fake_communicator, open_communicator, over, thread_communicators};
pub use device::{Device, View, ViewMemory};
pub use device_tensor::DeviceTensor;
pub use estimate::{EstimatedUnit, EstimatedWorld, estimate};
pub use host_communicator::{HostCommunicator, Operation};
pub use mesh::{Lane, Mesh};
pub use options::{
    Content, GradState, HsdpOptions, Memory, MemoryKind, Param, Phase, Reshard, UnitLayout, UnitOptions, UnitState,
    Unused,
};
pub use settings::{ReduceOp, Setting, UnitSettings};
pub use units::{Hsdp, LocalBox, Unit};
pub use work::Work;
