// SPDX-License-Identifier: Apache-2.0
//! Saves and loads in the background.

use crate::context::Context;
use crate::error::{Error, Result, StatusCode};
use crate::options::span_ns;
use crate::report::Report;
use crate::state::State;
use shardwright_sys::error::RawError;
use shardwright_sys::{ffi, raw};
use std::ffi::CStr;
use std::time::Duration;

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// How far a job is; values never decrease.
#[derive(Clone, Debug)]
pub struct Progress {
    /// What it is doing, e.g. "write".
    pub stage: String,
    /// Bytes moved so far.
    pub bytes_done: u64,
    /// Bytes to move; 0 = not known yet.
    pub bytes_total: u64,
    /// Items done so far.
    pub items_done: u64,
    /// Items in all; 0 = not known yet.
    pub items_total: u64,
    /// Time since it was submitted.
    pub elapsed: Duration,
}

/// A save or load in the background. It owns the state until it is taken back. Dropping a job that is still running
/// cancels it and waits for its end, because the memory that it reads goes with it.
pub struct Job {
    handle: *mut ffi::shw_job,
    state: Option<State<'static>>,
    _context: Context,
}

// SAFETY: jobs may be used from any thread.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

const SLICE: Duration = Duration::from_millis(100);

impl Job {
    pub(crate) fn new(handle: *mut ffi::shw_job, state: State<'static>, context: Context) -> Job {
        Job { handle, state: Some(state), _context: context }
    }

    /// Waits until the job is terminal: true, false when the time passed, or the job's error. `None` = no limit.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        let mut err = std::ptr::null_mut();
        // SAFETY: the handle lives as long as self.
        let status = unsafe { ffi::shw_job_wait(self.handle, span_ns(timeout), &mut err) };
        answer(status, err)
    }

    /// Waits until a save no longer reads the tensors.
    pub fn wait_staged(&self, timeout: Option<Duration>) -> Result<bool> {
        let mut err = std::ptr::null_mut();
        // SAFETY: the handle lives as long as self.
        let status = unsafe { ffi::shw_job_wait_staged(self.handle, span_ns(timeout), &mut err) };
        answer(status, err)
    }

    /// State now.
    pub fn state(&self) -> JobState {
        // SAFETY: the handle lives as long as self.
        match unsafe { ffi::shw_job_poll(self.handle) } {
            ffi::SHW_JOB_QUEUED => JobState::Queued,
            ffi::SHW_JOB_RUNNING => JobState::Running,
            ffi::SHW_JOB_STAGED => JobState::Staged,
            ffi::SHW_JOB_SUCCEEDED => JobState::Succeeded,
            ffi::SHW_JOB_CANCELLED => JobState::Cancelled,
            _ => JobState::Failed,
        }
    }

    /// True once the job is terminal.
    pub fn is_done(&self) -> bool {
        matches!(self.state(), JobState::Succeeded | JobState::Failed | JobState::Cancelled)
    }

    /// How far it is.
    pub fn progress(&self) -> Result<Progress> {
        // SAFETY: the handle lives as long as self; the stage is static text.
        unsafe {
            let p = raw::job_progress(self.handle)?;
            let stage =
                if p.stage.is_null() { String::new() } else { CStr::from_ptr(p.stage).to_string_lossy().into_owned() };
            Ok(Progress {
                stage,
                bytes_done: p.bytes_done,
                bytes_total: p.bytes_total,
                items_done: p.items_done,
                items_total: p.items_total,
                elapsed: Duration::from_nanos(p.elapsed_ns.max(0) as u64),
            })
        }
    }

    /// Asks the job to stop; it still ends in a terminal state.
    pub fn cancel(&self) {
        // SAFETY: the handle lives as long as self.
        unsafe { ffi::shw_job_cancel(self.handle) }
    }

    /// Report of a job that succeeded; FAILED_PRECONDITION before.
    pub fn report(&self) -> Result<Report> {
        // SAFETY: the handle lives as long as self.
        Ok(Report::new(unsafe { raw::job_report(self.handle) }?))
    }

    /// Waits for the end and gives report and state back. On failure the state is lost with the error; take it first with
    /// [`Job::into_state`] when it is needed.
    pub fn finish(mut self) -> Result<(Report, State<'static>)> {
        self.wait(None)?;
        let report = self.report()?;
        let state =
            self.state.take().ok_or_else(|| Error::new(StatusCode::FailedPrecondition, "the state was taken"))?;
        Ok((report, state))
    }

    /// Waits for the end, whatever it is, and gives the state back.
    pub fn into_state(mut self) -> Option<State<'static>> {
        self.wait_for_end();
        self.state.take()
    }

    fn wait_for_end(&self) {
        while !self.is_done() {
            // An error is an end, too.
            let _ = self.wait(Some(SLICE));
        }
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
            self.wait_for_end();
        }
        // SAFETY: owned, released once.
        unsafe { ffi::shw_job_release(self.handle) }
    }
}

fn answer(status: ffi::shw_status, err: *mut ffi::shw_error) -> Result<bool> {
    if status == ffi::SHW_PENDING {
        return Ok(false);
    }
    RawError::check(status, err)?;
    Ok(true)
}
