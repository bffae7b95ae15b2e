// SPDX-License-Identifier: Apache-2.0
//! Saves of shards in the background, while training goes on.

use crate::collective::Collective;
use crate::error::Result;
use crate::hsdp::options::Content;
use crate::hsdp::units::Hsdp;
use crate::job::{Finished, Job};
use crate::options::SaveOptions;
use crate::report::Report;
use crate::state::State;
use crate::workflow::{CLocation, Location, start_save};

/// A save of shards in the background: a [`Job`] whose state is not given back, because it has the memory of the [`Hsdp`].
#[derive(Debug)]
pub struct SaveJob(Job);

/// What a save of shards gives back.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "the outcome says whether the save succeeded"]
pub struct FinishedSave {
    /// What it did, or why it failed.
    pub outcome: Result<Report>,
    /// This rank's end of the transport, when the save had one.
    pub collective: Option<Collective>,
}

impl SaveJob {
    /// Waits for the end, whatever it is.
    ///
    /// # Panics
    /// Goes on with the panic of a callback that ended the job.
    pub fn finish(self) -> FinishedSave {
        let Finished { outcome, collective, .. } = self.0.finish();
        FinishedSave { outcome, collective }
    }
}

impl std::ops::Deref for SaveJob {
    type Target = Job;

    fn deref(&self) -> &Job {
        &self.0
    }
}

impl Hsdp {
    /// Saves what this rank holds of all units in the background, under `prefix` followed by the names of the parameters, and beside it
    /// what is in the state. The iterations go on meanwhile: what changes shards ([`Hsdp::update`], [`Hsdp::add_to_state`]) waits until
    /// the save has copied them ([`Job::wait_staged`]). It runs in the context that the units are in, whose jobs come one after the other:
    /// ranks of one process need a context each ([`Hsdp::in_context`]). A failure here is told to the other ranks; state and collective
    /// go with it.
    pub fn save_async(
        &mut self,
        prefix: &str,
        state: State<'static>,
        location: &Location,
        collective: Option<Collective>,
        options: &SaveOptions,
    ) -> Result<SaveJob> {
        let entries = state.handle();
        let prepare = || {
            // SAFETY: the state goes into a job that does not give it back, and nobody changes the shards while that reads them.
            unsafe { self.lend(prefix, Content::Params, entries) }?;
            Ok((CLocation::of(location)?, options.to_c()?))
        };
        let job = start_save(self.context(), state, collective, &options.progress, prepare)?;
        self.read_by(job.reader());
        Ok(SaveJob(job))
    }
}
