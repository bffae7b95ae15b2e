// SPDX-License-Identifier: Apache-2.0
//! How far saves and loads are.

use crate::error::quietly;
use crate::job::JobState;
use shardwright_sys::ffi;
use std::ffi::{CStr, c_void};
use std::sync::Arc;
use std::time::Duration;

/// How far a save or load is; values never decrease.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Progress {
    /// State of the job, or Running and at last Succeeded of a call.
    pub state: JobState,
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

impl Progress {
    /// # Safety
    /// The stage is NULL or text that lives for the call.
    pub(crate) unsafe fn of(c: &ffi::shw_progress) -> Progress {
        let stage = if c.stage.is_null() {
            String::new()
        } else {
            unsafe { CStr::from_ptr(c.stage) }.to_string_lossy().into_owned()
        };
        Progress {
            state: JobState::of(c.state),
            stage,
            bytes_done: c.bytes_done,
            bytes_total: c.bytes_total,
            items_done: c.items_done,
            items_total: c.items_total,
            elapsed: Duration::from_nanos(c.elapsed_ns.max(0) as u64),
        }
    }
}

type Told = dyn Fn(&Progress) + Send + Sync;

/// Is told how far a save or load is, as the option `progress`: when work begins, then at most ten times a second, and once
/// more when it has succeeded. It runs on the thread that called or on one of the library, one call at a time, returns soon
/// and calls nothing of this crate but `cancel`. A panic in it is dropped. Clones share.
///
/// ```
/// use shardwright::{ProgressListener, SaveOptions, State};
/// # let folder = std::env::temp_dir().join(format!("rust-progress-{}", std::process::id()));
///
/// let weights = [1.0f32; 4];
/// let mut state = State::new();
/// state.add("w", &[4], &weights)?;
/// let shown = ProgressListener::new(|now| println!("{}: {} of {}", now.stage, now.bytes_done, now.bytes_total));
/// shardwright::save(&state, &folder, &SaveOptions::new().progress(Some(shown)))?;
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), shardwright::Error>(())
/// ```
#[derive(Clone)]
pub struct ProgressListener(Arc<Box<Told>>); // the inner box is fat, C wants a thin pointer

impl ProgressListener {
    /// One that calls this function.
    pub fn new(told: impl Fn(&Progress) + Send + Sync + 'static) -> ProgressListener {
        ProgressListener(Arc::new(Box::new(told)))
    }

    /// What C calls; self must live until the call or job has ended.
    pub(crate) fn to_c(listener: &Option<ProgressListener>) -> (ffi::shw_progress_fn, *mut c_void) {
        match listener {
            Some(listener) => (Some(told), Arc::as_ptr(&listener.0).cast_mut().cast()),
            None => (None, std::ptr::null_mut()),
        }
    }
}

impl std::fmt::Debug for ProgressListener {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("ProgressListener").finish_non_exhaustive()
    }
}

unsafe extern "C" fn told(user: *mut c_void, progress: *const ffi::shw_progress) {
    // SAFETY: user is the box that the caller keeps; the struct is borrowed for this call.
    let (listener, progress) = unsafe { (&*user.cast::<Box<Told>>(), Progress::of(&*progress)) };
    quietly(|| listener(&progress));
}
