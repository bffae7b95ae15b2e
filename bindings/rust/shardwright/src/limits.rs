// SPDX-License-Identifier: Apache-2.0
//! Limits of time as C has them, in nanoseconds.

use std::time::Duration;

/// What the library takes where a call names no limit.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1800);

/// The limit of a call that reaches the host: 0 = the library's default, negative = none.
pub(crate) fn limit_of(timeout_ns: i64) -> Option<Duration> {
    match timeout_ns {
        0 => Some(DEFAULT_TIMEOUT),
        ns => u64::try_from(ns).ok().map(Duration::from_nanos),
    }
}

/// Of an optional span: none = no limit.
pub(crate) fn span_ns(span: Option<Duration>) -> i64 {
    span.map_or(-1, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

/// The deadline field: 0 = the library's default.
pub(crate) fn deadline_ns(deadline: Option<Duration>) -> i64 {
    deadline.map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX).max(1))
}
