// SPDX-License-Identifier: Apache-2.0
//! Saves and loads in the background.

use crate::collective::Collective;
use crate::context::Context;
use crate::error::Result;
use crate::limits::span_ns;
use crate::progress::{Progress, ProgressListener};
use crate::report::Report;
use crate::state::State;
use shardwright_sys::error::RawError;
use shardwright_sys::{ffi, raw};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum JobState {
    /// Not started.
    Queued,
    /// At work.
    Running,
    /// A save that no longer reads the tensors.
    Staged,
    /// Done, and durable when it was a save.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// Stopped by cancel.
    Cancelled,
}

impl JobState {
    pub(crate) fn of(number: i32) -> JobState {
        match number {
            ffi::SHW_JOB_QUEUED => JobState::Queued,
            ffi::SHW_JOB_RUNNING => JobState::Running,
            ffi::SHW_JOB_STAGED => JobState::Staged,
            ffi::SHW_JOB_SUCCEEDED => JobState::Succeeded,
            ffi::SHW_JOB_CANCELLED => JobState::Cancelled,
            _ => JobState::Failed,
        }
    }
}

/// A save or load in the background. It owns state and collective until [`Job::finish`] gives them back. Dropping a job that is still running
/// cancels it and waits for its end, because the memory that it reads goes with it.
pub struct Job {
    handle: Arc<Handle>,
    held: Option<Held>,
    _progress: Option<ProgressListener>,
    _context: Context,
}

/// What the job uses until it has ended.
struct Held {
    state: State<'static>,
    collective: Option<Collective>,
}

/// What a job that has ended gives back.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "the outcome says whether the job succeeded"]
pub struct Finished {
    /// What it did, or why it failed.
    pub outcome: Result<Report>,
    /// The state, also of a job that failed.
    pub state: State<'static>,
    /// This rank's end of the transport, when the job had one.
    pub collective: Option<Collective>,
}

/// The job of the library, for whoever has to know whether it still reads tensors.
pub(crate) struct Handle(*mut ffi::shw_job);

// SAFETY: jobs may be used from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// Waits until the tensors are no longer read, whatever became of the job.
    pub(crate) fn wait_until_unread(&self) {
        // SAFETY: the handle lives as long as self; an error is an end, too, and is asked for elsewhere.
        while unsafe { ffi::shw_job_wait_staged(self.0, -1, std::ptr::null_mut()) } == ffi::SHW_PENDING {}
        if !matches!(self.state(), JobState::Staged | JobState::Succeeded) {
            self.wait_for_end();
        }
    }

    fn state(&self) -> JobState {
        // SAFETY: the handle lives as long as self.
        JobState::of(unsafe { ffi::shw_job_poll(self.0) })
    }

    fn wait_for_end(&self) {
        // SAFETY: as in wait_until_unread.
        while unsafe { ffi::shw_job_wait(self.0, -1, std::ptr::null_mut()) } == ffi::SHW_PENDING {}
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_job_release(self.0) }
    }
}

impl Job {
    pub(crate) fn new(
        handle: *mut ffi::shw_job,
        state: State<'static>,
        collective: Option<Collective>,
        progress: &Option<ProgressListener>,
        context: Context,
    ) -> Job {
        let handle = Arc::new(Handle(handle));
        Job { handle, held: Some(Held { state, collective }), _progress: progress.clone(), _context: context }
    }

    /// Waits until the job is terminal: true, false when the time passed, or the job's error. `None` = no limit.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        let mut err = std::ptr::null_mut();
        // SAFETY: the handle lives as long as self.
        let status = unsafe { ffi::shw_job_wait(self.handle.0, span_ns(timeout), &mut err) };
        answer(status, err)
    }

    /// Waits until a save no longer reads the tensors.
    pub fn wait_staged(&self, timeout: Option<Duration>) -> Result<bool> {
        let mut err = std::ptr::null_mut();
        // SAFETY: the handle lives as long as self.
        let status = unsafe { ffi::shw_job_wait_staged(self.handle.0, span_ns(timeout), &mut err) };
        answer(status, err)
    }

    /// State now.
    pub fn state(&self) -> JobState {
        self.handle.state()
    }

    /// True once the job is terminal.
    pub fn is_done(&self) -> bool {
        matches!(self.state(), JobState::Succeeded | JobState::Failed | JobState::Cancelled)
    }

    /// How far it is.
    pub fn progress(&self) -> Result<Progress> {
        // SAFETY: the handle lives as long as self; the stage is static text.
        unsafe { Ok(Progress::of(&raw::job_progress(self.handle.0)?)) }
    }

    /// Asks the job to stop; it still ends in a terminal state.
    pub fn cancel(&self) {
        // SAFETY: the handle lives as long as self.
        unsafe { ffi::shw_job_cancel(self.handle.0) }
    }

    /// Report of a job that succeeded; FAILED_PRECONDITION before.
    pub fn report(&self) -> Result<Report> {
        // SAFETY: the handle lives as long as self.
        Ok(Report::new(unsafe { raw::job_report(self.handle.0) }?))
    }

    /// Waits for the end, whatever it is, and gives back what the job used.
    ///
    /// # Panics
    /// Goes on with the panic of a callback that ended the job.
    pub fn finish(mut self) -> Finished {
        self.handle.wait_for_end();
        let outcome = self.wait(None).and_then(|_| self.report());
        let Held { state, collective } = self.held.take().expect("a job is finished once");
        Finished { outcome, state, collective }
    }

    /// Nothing once the job is gone, which then reads nothing.
    pub(crate) fn reader(&self) -> Weak<Handle> {
        Arc::downgrade(&self.handle)
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_tuple("Job").field(&self.state()).finish()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.is_done() {
            self.cancel();
            self.handle.wait_for_end();
        }
    }
}

/// Of a call that waits: true when it has ended, false when the time passed.
pub(crate) fn answer(status: ffi::shw_status, err: *mut ffi::shw_error) -> Result<bool> {
    if status == ffi::SHW_PENDING {
        return Ok(false);
    }
    RawError::check(status, err)?;
    Ok(true)
}
