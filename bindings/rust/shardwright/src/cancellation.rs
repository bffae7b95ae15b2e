// SPDX-License-Identifier: Apache-2.0
//! Ending calls from another thread.

use crate::error::Result;
use shardwright_sys::{ffi, raw};
use std::sync::Arc;

/// Ends the calls that were given it in their options, from another thread. Each ends with CANCELLED at its next step, also
/// when it begins later; a save that has reached its commit point succeeds. A call into a storage or transport of the host
/// is not broken off: a rank that waits for others is woken by [`Aborter::abort`](crate::Aborter::abort). One may serve many
/// calls. Clones share; thread-safe.
///
/// ```
/// use shardwright::{Cancellation, ErrorKind, SaveOptions, State};
///
/// let cancellation = Cancellation::new()?;
/// cancellation.cancel(); // from a signal handler's thread, say
/// let options = SaveOptions::new().cancellation(Some(cancellation));
/// let error = shardwright::save(&State::new(), "run/step-00000100", &options).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Cancelled);
/// # Ok::<(), shardwright::Error>(())
/// ```
#[derive(Clone)]
pub struct Cancellation(Arc<Owned>);

struct Owned(*mut ffi::shw_cancellation);

// SAFETY: cancellations may be used from any thread.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Cancellation {
    /// One that nothing has ended yet.
    pub fn new() -> Result<Cancellation> {
        // SAFETY: no arguments.
        Ok(Cancellation(Arc::new(Owned(unsafe { raw::cancellation_create() }?))))
    }

    /// Asks the calls to stop and returns at once. May be called any number of times.
    pub fn cancel(&self) {
        // SAFETY: the handle lives as long as self.
        unsafe { ffi::shw_cancellation_cancel(self.0.0) }
    }

    pub(crate) fn handle(&self) -> *mut ffi::shw_cancellation {
        self.0.0
    }
}

impl std::fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Cancellation").finish_non_exhaustive()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: owned, released once; calls that were given it keep what they need.
        unsafe { ffi::shw_cancellation_release(self.0) }
    }
}
