// SPDX-License-Identifier: Apache-2.0
//! Memory of an iteration before anything is allocated.

use crate::error::Result;
use crate::hsdp::options::{HsdpOptions, Memory, MemoryKind, Param, UnitOptions, with_batch};
use shardwright_sys::{ffi, raw};

/// A unit whose memory is foretold; parameters need no elements.
#[derive(Clone, Debug, Default)]
pub struct EstimatedUnit<'a> {
    /// Its parameters.
    pub params: Vec<Param<'a>>,
    /// Its options.
    pub options: UnitOptions,
    /// Its forward and backward are around those of all others.
    pub is_root: bool,
    /// Gradients are copied and added, and not read where they lie.
    pub adds_grads: bool,
}

/// Ranks along the axes, 1 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstimatedWorld {
    /// Ranks that share the parameters of a replica.
    pub shards: i64,
    /// Ranks that hold the same shard.
    pub replicas: i64,
    /// Communicators add in rank order by themselves, as those of threads do; else there is room for the parts of all ranks.
    pub ordered_sums: bool,
}

/// What a rank of the world will hold and at most held of one kind in an iteration of the units in
/// their order, by the same layouts and schedule. INVALID_ARGUMENT for what a unit would refuse.
pub fn estimate(
    units: &[EstimatedUnit],
    world: &EstimatedWorld,
    options: &HsdpOptions,
    kind: MemoryKind,
) -> Result<Memory> {
    let world = ffi::shw_hsdp_estimate_world {
        struct_size: size_of::<ffi::shw_hsdp_estimate_world>() as u32,
        flags: if world.ordered_sums { ffi::SHW_HSDP_ESTIMATE_ORDERED_SUMS as u32 } else { 0 },
        shard_size: world.shards,
        replicate_size: world.replicas,
    };
    let options = options.raw(std::ptr::null_mut(), std::ptr::null());
    collect(units, &mut Vec::new(), &mut |raw_units| {
        // SAFETY: everything that the columns point to lives for the call.
        let memory =
            unsafe { raw::hsdp_estimate(raw_units.as_ptr(), raw_units.len() as u64, &world, &options, kind as i32) }?;
        Ok(Memory::of(&memory))
    })
}

/// Calls `end` with all units as C has them, one frame for each, whose columns live meanwhile.
fn collect(
    units: &[EstimatedUnit],
    made: &mut Vec<ffi::shw_hsdp_estimate_unit>,
    end: &mut dyn FnMut(&[ffi::shw_hsdp_estimate_unit]) -> Result<Memory>,
) -> Result<Memory> {
    let Some((first, rest)) = units.split_first() else { return end(made) };
    let options = first.options.raw();
    let flag = |is_set: bool, bit: u64| if is_set { bit as u32 } else { 0 };
    with_batch(&first.params, |batch| {
        made.push(ffi::shw_hsdp_estimate_unit {
            struct_size: size_of::<ffi::shw_hsdp_estimate_unit>() as u32,
            flags: flag(first.is_root, ffi::SHW_HSDP_ESTIMATE_ROOT)
                | flag(first.adds_grads, ffi::SHW_HSDP_ESTIMATE_ADDS_GRADS),
            params: batch,
            options: &options,
        });
        collect(rest, made, end)
    })?
}
