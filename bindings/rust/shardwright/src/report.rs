// SPDX-License-Identifier: Apache-2.0
//! What a call did.

use crate::error::Result;
use crate::text::sized_text;
use shardwright_sys::{ffi, raw};

/// What a save, load, verification or clean-up did. Immutable, thread-safe.
pub struct Report(*mut ffi::shw_report);

// SAFETY: reports are immutable.
unsafe impl Send for Report {}
// SAFETY: as above.
unsafe impl Sync for Report {}

impl Report {
    /// Takes ownership.
    pub(crate) fn new(handle: *mut ffi::shw_report) -> Report {
        Report(handle)
    }

    /// The whole report as JSON text with "schema": 1.
    pub fn json(&self) -> String {
        // SAFETY: the handle lives as long as self.
        sized_text(|size| unsafe { ffi::shw_report_json(self.0, size) })
    }

    /// The figures.
    pub fn summary(&self) -> Result<ffi::shw_report_summary> {
        // SAFETY: the handle lives as long as self.
        Ok(unsafe { raw::report_summarize(self.0) }?)
    }

    fn names(&self, list: i32) -> Vec<String> {
        // SAFETY: the handle lives as long as self.
        let count = unsafe { ffi::shw_report_name_count(self.0, list) };
        (0..count).map(|i| sized_text(|size| unsafe { ffi::shw_report_name(self.0, list, i, size) })).collect()
    }

    /// Entries that were filled.
    pub fn loaded(&self) -> Vec<String> {
        self.names(ffi::SHW_REPORT_LOADED)
    }

    /// Wanted but not stored.
    pub fn missing(&self) -> Vec<String> {
        self.names(ffi::SHW_REPORT_MISSING)
    }

    /// Stored but not wanted.
    pub fn unexpected(&self) -> Vec<String> {
        self.names(ffi::SHW_REPORT_UNEXPECTED)
    }

    /// "name: stored dtype -> wanted dtype".
    pub fn casts(&self) -> Vec<String> {
        self.names(ffi::SHW_REPORT_CAST)
    }

    /// "name: [stored shape] -> [wanted shape]".
    pub fn shapes(&self) -> Vec<String> {
        self.names(ffi::SHW_REPORT_SHAPE)
    }

    /// Damage found by a verification, one sentence each.
    pub fn findings(&self) -> Vec<String> {
        self.names(ffi::SHW_REPORT_FINDING)
    }

    /// Generations removed, or removable in a dry run.
    pub fn removed(&self) -> Vec<String> {
        self.names(ffi::SHW_REPORT_REMOVED)
    }
}

impl std::fmt::Debug for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.json())
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_report_release(self.0) }
    }
}
