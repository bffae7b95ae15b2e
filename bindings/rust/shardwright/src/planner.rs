// SPDX-License-Identifier: Apache-2.0
//! The workflow in steps, for hosts that move plan buffers between ranks themselves.

use crate::checkpoint::Checkpoint;
use crate::context::Context;
use crate::error::Result;
use crate::load_exchange::LoadExchange;
use crate::options::{LoadOptions, SaveOptions};
use crate::report::Report;
use crate::state::State;
use crate::text::{Blob, Parts, copy_bytes};
use crate::workflow::{CLocation, Location};
use shardwright_sys::{ffi, raw};

/// A verified plan buffer. Immutable, thread-safe.
pub struct Plan(*mut ffi::shw_plan);

// SAFETY: plans are immutable.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

impl Plan {
    /// From bytes of another rank or run. DATA_LOSS, INVALID_ARGUMENT, UNIMPLEMENTED.
    pub fn from_bytes(bytes: &[u8]) -> Result<Plan> {
        // SAFETY: the slice lives for the call.
        Ok(Plan(unsafe { raw::plan_create(bytes) }?))
    }

    /// Owns the handle.
    pub(crate) fn new(handle: *mut ffi::shw_plan) -> Plan {
        Plan(handle)
    }

    pub(crate) fn handle(&self) -> *const ffi::shw_plan {
        self.0
    }

    /// The rank that it is for; 0 for a merged plan.
    pub fn rank(&self) -> i32 {
        // SAFETY: the handle lives as long as self.
        unsafe { ffi::shw_plan_rank(self.0) }
    }

    /// The plan buffer.
    pub fn bytes(&self) -> Vec<u8> {
        // SAFETY: the handle lives as long as self.
        unsafe { copy_bytes(ffi::shw_plan_data(self.0), ffi::shw_plan_size(self.0)) }
    }

    /// The plan as JSON text with at most `item_limit` items.
    pub fn json(&self, item_limit: u64) -> Result<String> {
        // SAFETY: the handle lives as long as self.
        let parts = Parts::new(unsafe { raw::plan_json(self.0, item_limit) }?);
        Ok(String::from_utf8_lossy(&parts.bytes()).into_owned())
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let bytes = unsafe { ffi::shw_plan_size(self.0) }; // SAFETY: the handle lives as long as self
        f.debug_struct("Plan").field("rank", &self.rank()).field("bytes", &bytes).finish()
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_plan_release(self.0) }
    }
}

/// Plans one save of one rank: local_plan on all, global_plan on one, finish and execute on all, commit on the one.
pub struct SavePlanner<'a> {
    handle: *mut ffi::shw_save_planner,
    _state: &'a State<'a>,
    _context: Context,
}

impl<'a> SavePlanner<'a> {
    /// The planner of `rank` of `world_size`.
    pub fn new(state: &'a State<'a>, rank: i32, world_size: i32, options: &SaveOptions) -> Result<Self> {
        let context = Context::shared()?;
        let c = options.to_c()?;
        // SAFETY: handles and options live for the call.
        let handle =
            unsafe { raw::save_planner_create(context.handle(), state.handle(), rank, world_size, &c.options) }?;
        Ok(SavePlanner { handle, _state: state, _context: context })
    }

    /// What this rank describes to the one that merges.
    pub fn local_plan(&mut self) -> Result<Vec<u8>> {
        // SAFETY: the handle lives as long as self, here and below.
        Ok(Parts::new(unsafe { raw::save_planner_local_plan(self.handle) }?).bytes())
    }

    /// Merges the local plans of all ranks, in rank order: one part per rank. Draws the generation at the target.
    pub fn global_plan(&mut self, plans: &[Vec<u8>], location: &Location) -> Result<Vec<Vec<u8>>> {
        let at = CLocation::of(location)?;
        let blob = Blob::of(plans);
        let parts = unsafe {
            raw::save_planner_global_plan(
                self.handle,
                at.storage,
                at.path.as_ptr(),
                blob.bytes.as_ptr().cast(),
                blob.offsets.as_ptr(),
                blob.count(),
            )
        }?;
        Ok(Parts::new(parts).all())
    }

    /// Takes this rank's part.
    pub fn finish(&mut self, mine: &[u8]) -> Result<Plan> {
        Ok(Plan(unsafe { raw::save_planner_finish(self.handle, mine) }?))
    }

    /// Writes this rank's file; the result goes to the rank that commits.
    pub fn execute(&mut self, plan: &Plan, location: &Location) -> Result<Vec<u8>> {
        let at = CLocation::of(location)?;
        Ok(Parts::new(unsafe { raw::save_execute(self.handle, plan.0, at.storage, at.path.as_ptr()) }?).bytes())
    }

    /// Checks the results of all ranks, in rank order, and commits.
    pub fn commit(&mut self, results: &[Vec<u8>]) -> Result<Report> {
        let blob = Blob::of(results);
        let report =
            unsafe { raw::save_commit(self.handle, blob.bytes.as_ptr().cast(), blob.offsets.as_ptr(), blob.count()) }?;
        Ok(Report::new(report))
    }
}

impl std::fmt::Debug for SavePlanner<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("SavePlanner").field("state", self._state).finish_non_exhaustive()
    }
}

impl Drop for SavePlanner<'_> {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_save_planner_release(self.handle) }
    }
}

/// Plans one load of one rank. The state is its own again when the planner is dropped.
///
/// ```
/// use shardwright::{Checkpoint, Context, LoadOptions, LoadPlanner, Location, SaveOptions, State, Storage};
///
/// let (context, storage) = (Context::shared()?, Storage::memory()?);
/// let location = Location::storage(&storage, "run/step-00000100");
/// let weights = [1.0f32, 2.0, 3.0, 4.0];
/// let mut saved = State::new();
/// saved.add("model.weight", &[2, 2], &weights)?;
/// saved.add_json("step", "100")?;
/// shardwright::save_at(&context, &saved, &location, None, &SaveOptions::default())?;
///
/// let checkpoint = Checkpoint::open_at(&context, &location)?;
/// let mut target = [0.0f32; 4];
/// let mut state = State::new();
/// state.add_mut("model.weight", &[2, 2], &mut target)?;
/// state.add_json("step", "null")?;
/// let mut planner = LoadPlanner::new(&checkpoint, &mut state, 0, &LoadOptions::default())?;
/// let plan = planner.local_plan()?;
/// planner.execute(&plan)?;
/// drop(planner);
///
/// assert_eq!(state.object("step").unwrap().1, b"100");
/// drop(state);
/// assert_eq!(target, weights);
/// # Ok::<(), shardwright::Error>(())
/// ```
pub struct LoadPlanner<'p, 's> {
    handle: *mut ffi::shw_load_planner,
    state: &'p mut State<'s>,
    _checkpoint: &'p Checkpoint,
}

impl<'p, 's> LoadPlanner<'p, 's> {
    /// The planner of `rank`, which selects rank-local entries.
    pub fn new(checkpoint: &'p Checkpoint, state: &'p mut State<'s>, rank: i32, options: &LoadOptions) -> Result<Self> {
        let c = options.to_c()?;
        // SAFETY: handles and options live for the call.
        let handle = unsafe { raw::load_planner_create(checkpoint.handle(), state.handle(), rank, &c.options) }?;
        Ok(LoadPlanner { handle, state, _checkpoint: checkpoint })
    }

    /// Matches what the state wants with what is stored.
    pub fn local_plan(&mut self) -> Result<Plan> {
        // SAFETY: the handle lives as long as self, here and below.
        Ok(Plan(unsafe { raw::load_planner_local_plan(self.handle) }?))
    }

    /// Reads what the plan says into the state.
    pub fn execute(&mut self, plan: &Plan) -> Result<Report> {
        let outcome = unsafe { raw::load_execute(self.handle, plan.0) };
        self.loaded(outcome.map(Report::new).map_err(Into::into))
    }

    /// What this rank of `world_size` wants by its local plan, for the one that calls
    /// [`exchange_plans`](crate::exchange_plans). A rank with less than 2 MiB to read wants nothing of others.
    pub fn want_list(&mut self, plan: &Plan, world_size: i32) -> Result<Plan> {
        Ok(Plan(unsafe { raw::load_planner_want_list(self.handle, plan.0, world_size) }?))
    }

    /// Begins the load of what the local plan says, with blocks that come as the exchange plan says. The deadline of the
    /// options counts from here, and the memory of all rounds is taken here. FAILED_PRECONDITION for an exchange plan of another
    /// rank, generation or local plan, RESOURCE_EXHAUSTED when the memory budget has no room.
    pub fn exchange(&mut self, plan: &Plan, exchange_plan: &Plan) -> Result<LoadExchange<'_, 'p, 's>> {
        let handle = unsafe { raw::load_exchange_create(self.handle, plan.0, exchange_plan.0) }?;
        Ok(LoadExchange::new(handle, self))
    }

    pub(crate) fn loaded(&mut self, outcome: Result<Report>) -> Result<Report> {
        self.state.loaded(outcome)
    }
}

impl std::fmt::Debug for LoadPlanner<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("LoadPlanner")
            .field("state", self.state)
            .field("checkpoint", self._checkpoint)
            .finish_non_exhaustive()
    }
}

impl Drop for LoadPlanner<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_load_planner_release(self.handle) }
    }
}
