// SPDX-License-Identifier: Apache-2.0
//! What a host changes while it trains, and reads back.

use crate::error::Result;
use crate::hsdp::options::{Phase, Reshard, Unused, or_none};
use crate::hsdp::units::{Hsdp, Unit};
use shardwright_sys::{ffi, raw};

/// What becomes of gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReduceOp {
    /// Their mean over the ranks that share data.
    Average,
    /// Their sum.
    Sum,
}

/// What may be changed between iterations, equally on all ranks; of one unit or of all.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// Whether gradients are reduced, or stay on this rank.
    RequiresGradientSync(bool),
    /// Whether sums over the shard axis go on to the replicas, or wait.
    RequiresAllReduce(bool),
    /// What becomes of whole parameters after forward.
    ReshardAfterForward(Reshard),
    /// Whether units are resharded after backward.
    ReshardAfterBackward(bool),
    /// What becomes of gradients.
    ReduceOp(ReduceOp),
    /// Whether backward needs the parameters.
    UnshardInBackward(bool),
    /// Whether resharding keeps the memory of whole parameters.
    KeepUnsharded(bool),
    /// What a parameter without a gradient adds.
    Unused(Unused),
    /// By what averages are divided; 0 = the ranks that share data.
    DivideFactor(f64),
}

/// A value as C takes it.
enum RawSetting {
    Whole(i32, i64),
    Real(i32, f64),
}

impl Setting {
    fn raw(self) -> Vec<RawSetting> {
        use RawSetting::{Real, Whole};
        match self {
            Setting::RequiresGradientSync(value) => vec![Whole(ffi::SHW_HSDP_REQUIRES_GRADIENT_SYNC, value.into())],
            Setting::RequiresAllReduce(value) => vec![Whole(ffi::SHW_HSDP_REQUIRES_ALL_REDUCE, value.into())],
            Setting::ReshardAfterForward(value) => {
                let (policy, size) = value.columns();
                let size = (size > 0).then_some(Whole(ffi::SHW_HSDP_SECONDARY_SIZE, size));
                size.into_iter().chain([Whole(ffi::SHW_HSDP_RESHARD_AFTER_FORWARD, policy.into())]).collect()
            }
            Setting::ReshardAfterBackward(value) => vec![Whole(ffi::SHW_HSDP_RESHARD_AFTER_BACKWARD, value.into())],
            Setting::ReduceOp(value) => {
                let number =
                    if value == ReduceOp::Sum { ffi::SHW_HSDP_REDUCE_SUM } else { ffi::SHW_HSDP_REDUCE_AVERAGE };
                vec![Whole(ffi::SHW_HSDP_REDUCE_OP, number.into())]
            }
            Setting::UnshardInBackward(value) => vec![Whole(ffi::SHW_HSDP_UNSHARD_IN_BACKWARD, value.into())],
            Setting::KeepUnsharded(value) => vec![Whole(ffi::SHW_HSDP_KEEP_UNSHARDED, value.into())],
            Setting::Unused(value) => {
                let number = if value == Unused::Skip { ffi::SHW_HSDP_UNUSED_SKIP } else { ffi::SHW_HSDP_UNUSED_ZERO };
                vec![Whole(ffi::SHW_HSDP_UNUSED_POLICY, number.into())]
            }
            Setting::DivideFactor(value) => vec![Real(ffi::SHW_HSDP_DIVIDE_FACTOR, value)],
        }
    }
}

/// Values of a unit as [`Setting`] sets them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct UnitSettings {
    /// Whether gradients are reduced, or stay on this rank.
    pub requires_gradient_sync: bool,
    /// Whether sums over the shard axis go on to the replicas, or wait.
    pub requires_all_reduce: bool,
    /// What becomes of whole parameters after forward.
    pub reshard_after_forward: Reshard,
    /// Whether the unit is resharded after backward.
    pub reshard_after_backward: bool,
    /// What becomes of gradients.
    pub reduce_op: ReduceOp,
    /// Whether backward needs the parameters.
    pub unshard_in_backward: bool,
    /// Whether resharding keeps the memory of whole parameters.
    pub keep_unsharded: bool,
    /// What a parameter without a gradient adds.
    pub unused: Unused,
    /// By what averages are divided; 0 = the ranks that share data.
    pub divide_factor: f64,
}

impl Hsdp {
    /// Whether no backward follows in this iteration.
    pub fn set_is_last_backward(&mut self, is_last: bool) -> Result<()> {
        self.set_of_context(ffi::SHW_HSDP_IS_LAST_BACKWARD, is_last.into())
    }

    /// Units that are gathered ahead from now on, equally on all ranks; 0 none.
    pub fn set_prefetch_depth(&mut self, units: i32) -> Result<()> {
        self.set_of_context(ffi::SHW_HSDP_PREFETCH_DEPTH, or_none(units).into())
    }

    /// Packed gradients that live at once from now on, equally on all ranks; at least 1.
    pub fn set_max_inflight_reduce(&mut self, packed: i32) -> Result<()> {
        self.set_of_context(ffi::SHW_HSDP_MAX_INFLIGHT_REDUCE, packed.into())
    }

    fn set_of_context(&mut self, key: i32, value: i64) -> Result<()> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_set_i64(self.handle, key, value) }?)
    }

    /// Sets a value in all units, equally on all ranks.
    pub fn set(&mut self, setting: Setting) -> Result<()> {
        for value in setting.raw() {
            // SAFETY: the handle lives.
            match value {
                RawSetting::Whole(key, value) => unsafe { raw::hsdp_set_i64(self.handle, key, value) }?,
                RawSetting::Real(key, value) => unsafe { raw::hsdp_set_f64(self.handle, key, value) }?,
            }
        }
        Ok(())
    }

    /// Sets a value of one unit, equally on all ranks.
    pub fn set_of(&mut self, unit: Unit, setting: Setting) -> Result<()> {
        for value in setting.raw() {
            // SAFETY: the handle lives.
            match value {
                RawSetting::Whole(key, value) => unsafe { raw::hsdp_unit_set_i64(self.raw(unit)?, key, value) }?,
                RawSetting::Real(key, value) => unsafe { raw::hsdp_unit_set_f64(self.raw(unit)?, key, value) }?,
            }
        }
        Ok(())
    }

    /// What the unit is set to now, by its options and by what was set since.
    pub fn settings_of(&self, unit: Unit) -> Result<UnitSettings> {
        let handle = self.raw(unit)?;
        // SAFETY: the handle lives.
        let number = |key| -> Result<i64> { Ok(unsafe { raw::hsdp_unit_get_i64(handle, key) }?) };
        let switch = |key| Ok::<_, crate::Error>(number(key)? != 0);
        let is = |key, value: i32| Ok::<_, crate::Error>(number(key)? == i64::from(value));
        let summed = is(ffi::SHW_HSDP_REDUCE_OP, ffi::SHW_HSDP_REDUCE_SUM)?;
        let skipped = is(ffi::SHW_HSDP_UNUSED_POLICY, ffi::SHW_HSDP_UNUSED_SKIP)?;
        let policy = number(ffi::SHW_HSDP_RESHARD_AFTER_FORWARD)?;
        Ok(UnitSettings {
            requires_gradient_sync: switch(ffi::SHW_HSDP_REQUIRES_GRADIENT_SYNC)?,
            requires_all_reduce: switch(ffi::SHW_HSDP_REQUIRES_ALL_REDUCE)?,
            reshard_after_forward: Reshard::of(policy, number(ffi::SHW_HSDP_SECONDARY_SIZE)?),
            reshard_after_backward: switch(ffi::SHW_HSDP_RESHARD_AFTER_BACKWARD)?,
            reduce_op: if summed { ReduceOp::Sum } else { ReduceOp::Average },
            unshard_in_backward: switch(ffi::SHW_HSDP_UNSHARD_IN_BACKWARD)?,
            keep_unsharded: switch(ffi::SHW_HSDP_KEEP_UNSHARDED)?,
            unused: if skipped { Unused::Skip } else { Unused::Zero },
            // SAFETY: the handle lives.
            divide_factor: unsafe { raw::hsdp_unit_get_f64(handle, ffi::SHW_HSDP_DIVIDE_FACTOR) }?,
        })
    }

    /// What `set_prefetch_depth` sets.
    pub fn prefetch_depth(&self) -> Result<i32> {
        self.of_context(ffi::SHW_HSDP_PREFETCH_DEPTH)
    }

    /// What `set_max_inflight_reduce` sets.
    pub fn max_inflight_reduce(&self) -> Result<i32> {
        self.of_context(ffi::SHW_HSDP_MAX_INFLIGHT_REDUCE)
    }

    fn of_context(&self, key: i32) -> Result<i32> {
        // SAFETY: the handle lives. The values are counts of 31 bits.
        Ok(unsafe { raw::hsdp_get_i64(self.handle, key) }? as i32)
    }

    /// Units that are gathered ahead when the unit runs in the phase, in place of what the order of the last iteration says.
    pub fn set_prefetch(&mut self, unit: Unit, phase: Phase, ahead: &[Unit]) -> Result<()> {
        let handles = ahead.iter().map(|each| self.raw(*each)).collect::<Result<Vec<_>>>()?;
        let key =
            if phase == Phase::Forward { ffi::SHW_HSDP_FORWARD_PREFETCH } else { ffi::SHW_HSDP_BACKWARD_PREFETCH };
        // SAFETY: the handles live for the call.
        Ok(unsafe { raw::hsdp_unit_set_units(self.raw(unit)?, key, handles.as_ptr().cast(), handles.len() as u64) }?)
    }

    /// A parameter gets no gradients, or gets them again, from the next pre_forward on.
    pub fn set_frozen(&mut self, unit: Unit, index: usize, is_frozen: bool) -> Result<()> {
        // SAFETY: the handle lives.
        Ok(unsafe { raw::hsdp_unit_set_frozen(self.raw(unit)?, index as u64, is_frozen.into()) }?)
    }
}
