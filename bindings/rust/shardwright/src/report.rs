// SPDX-License-Identifier: Apache-2.0
//! What a call did.

use crate::error::Result;
use crate::text::sized_text;
use shardwright_sys::{ffi, raw};
use std::time::Duration;

/// What a save, load, verification or clean-up did. Immutable, thread-safe.
pub struct Report(*mut ffi::shw_report);

// SAFETY: reports are immutable.
unsafe impl Send for Report {}
// SAFETY: as above.
unsafe impl Sync for Report {}

/// Figures of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Summary {
    /// Whether the result survives a loss of power.
    pub is_durable: bool,
    /// Whether stored blocks have digests.
    pub has_digests: bool,
    /// Whether digests were checked on reading.
    pub is_verified: bool,
    /// Tensors.
    pub tensor_count: u64,
    /// Byte objects.
    pub object_count: u64,
    /// Chunks of this rank.
    pub chunk_count: u64,
    /// Data files of the whole checkpoint; of a removal, those that hold nothing else.
    pub file_count: u64,
    /// Payload that this rank wrote, or what it read from the files.
    pub bytes: u64,
    /// Payload of the whole checkpoint.
    pub bytes_total: u64,
    /// What was read beyond the boxes that were wanted.
    pub bytes_over_read: u64,
    /// Most bytes of staging memory in use at one time.
    pub bytes_staged_peak: u64,
    /// What came to this rank from others through the collective.
    pub bytes_received: u64,
    /// How much of `bytes` is known to have come from the page cache.
    pub bytes_cached: u64,
    /// Time of planning.
    pub plan: Duration,
    /// Time of staging.
    pub stage: Duration,
    /// Time of reading or writing.
    pub transfer: Duration,
    /// Time of making files durable.
    pub sync: Duration,
    /// Time of the commit.
    pub commit: Duration,
    /// Time of the whole call.
    pub elapsed: Duration,
}

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
    pub fn summary(&self) -> Result<Summary> {
        // SAFETY: the handle lives as long as self.
        let figures = unsafe { raw::report_summarize(self.0) }?;
        let has = |flag: u64| u64::from(figures.flags) & flag != 0;
        let span = |ns: i64| Duration::from_nanos(ns.max(0) as u64);
        Ok(Summary {
            is_durable: !has(ffi::SHW_REPORT_NOT_DURABLE),
            has_digests: !has(ffi::SHW_REPORT_WITHOUT_DIGESTS),
            is_verified: !has(ffi::SHW_REPORT_UNVERIFIED),
            tensor_count: figures.tensor_count,
            object_count: figures.object_count,
            chunk_count: figures.chunk_count,
            file_count: figures.file_count,
            bytes: figures.bytes,
            bytes_total: figures.bytes_total,
            bytes_over_read: figures.bytes_over_read,
            bytes_staged_peak: figures.bytes_staged_peak,
            bytes_received: figures.bytes_received,
            bytes_cached: figures.bytes_cached,
            plan: span(figures.plan_ns),
            stage: span(figures.stage_ns),
            transfer: span(figures.transfer_ns),
            sync: span(figures.sync_ns),
            commit: span(figures.commit_ns),
            elapsed: span(figures.elapsed_ns),
        })
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

    /// Generations that a clean-up removed, or entries that a removal did, or would in a dry run.
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
