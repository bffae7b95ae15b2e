// SPDX-License-Identifier: Apache-2.0
//! The error of every failed call.

use shardwright_sys::error::RawError;
use shardwright_sys::ffi;
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fmt;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Status number of the C library. Numbers that this version does not know are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatusCode(pub i32);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:ident;)*) => {
        #[allow(non_upper_case_globals)]
        impl StatusCode { $($(#[$doc])* pub const $name: StatusCode = StatusCode(ffi::$value);)* }
    };
}

codes! {
    /// A call or job was cancelled by the host.
    Cancelled = SHW_CANCELLED;
    /// A plugin or peer reported a code that nobody knows.
    Unknown = SHW_UNKNOWN;
    /// A parameter, option or plan is wrong whatever the state.
    InvalidArgument = SHW_INVALID_ARGUMENT;
    /// A limit given by the host passed.
    DeadlineExceeded = SHW_DEADLINE_EXCEEDED;
    /// A path, tensor or plugin is missing.
    NotFound = SHW_NOT_FOUND;
    /// The target exists, or a name is doubled.
    AlreadyExists = SHW_ALREADY_EXISTS;
    /// Refused by the system, or unsafe content.
    PermissionDenied = SHW_PERMISSION_DENIED;
    /// Memory, disk, descriptors or a configured limit.
    ResourceExhausted = SHW_RESOURCE_EXHAUSTED;
    /// The right call in the wrong state.
    FailedPrecondition = SHW_FAILED_PRECONDITION;
    /// A conflict; retry from the start.
    Aborted = SHW_ABORTED;
    /// A short read, or a box outside a tensor.
    OutOfRange = SHW_OUT_OF_RANGE;
    /// An optional part is missing, or a newer caller.
    Unimplemented = SHW_UNIMPLEMENTED;
    /// A broken invariant of the library.
    Internal = SHW_INTERNAL;
    /// A transient failure of storage or transport.
    Unavailable = SHW_UNAVAILABLE;
    /// Torn, damaged or unreadable bytes.
    DataLoss = SHW_DATA_LOSS;
    /// Credentials are missing or expired.
    Unauthenticated = SHW_UNAUTHENTICATED;
    /// A callback of the host failed.
    HostException = SHW_HOST_EXCEPTION;
}

impl StatusCode {
    /// Name in capitals, e.g. `NOT_FOUND`; `UNRECOGNISED` for numbers that the library does not know.
    pub fn name(self) -> &'static str {
        // SAFETY: the library returns static text.
        unsafe { CStr::from_ptr(ffi::shw_status_name(self.0)) }.to_str().unwrap_or("UNRECOGNISED")
    }
}

impl fmt::Debug for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a call failed.
#[derive(Debug, Clone)]
pub struct Error {
    code: StatusCode,
    message: String,
    details: BTreeMap<String, String>,
    retryable: bool,
    source: Option<Box<Cause>>,
}

/// One cause further down.
#[derive(Debug, Clone)]
struct Cause {
    message: String,
    source: Option<Box<Cause>>,
}

impl Error {
    /// An error made by the host, for callbacks.
    pub fn new(code: StatusCode, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), details: BTreeMap::new(), retryable: false, source: None }
    }

    /// The status code.
    pub fn code(&self) -> StatusCode {
        self.code
    }

    /// What failed, on which noun, and what to do, outermost sentence first.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Facts by key: rank, tensor, file, offset, expected, found, ...
    pub fn details(&self) -> &BTreeMap<String, String> {
        &self.details
    }

    /// True when the same call may succeed if it is repeated from its start.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }
}

impl From<RawError> for Error {
    fn from(raw: RawError) -> Error {
        resume_host_panic(raw.status());
        let code = StatusCode(raw.status());
        let mut message = raw.message();
        if message.is_empty() {
            message = format!("the library returned {code} without a message");
        }
        let source = raw
            .causes()
            .into_iter()
            .rev()
            .fold(None, |inner, message| Some(Box::new(Cause { message, source: inner })));
        Error { code, message, details: raw.details().into_iter().collect(), retryable: raw.is_retryable(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|c| c as _)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|c| c as _)
    }
}

thread_local! {
    // Panic of a callback, put aside until the call that caused it returns on the same thread.
    static PANIC: RefCell<Option<Box<dyn Any + Send>>> = const { RefCell::new(None) };
}

/// Runs a callback of the host; a panic is put aside and HOST_EXCEPTION returned, an error becomes an error object.
pub(crate) fn guard(err: *mut *mut ffi::shw_error, body: impl FnOnce() -> Result<()>) -> ffi::shw_status {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(Ok(())) => ffi::SHW_OK,
        Ok(Err(error)) => give_error(&error, err),
        Err(payload) => {
            PANIC.with(|p| *p.borrow_mut() = Some(payload));
            give_error(&Error::new(StatusCode::HostException, "a callback of the host panicked"), err)
        }
    }
}

fn give_error(error: &Error, err: *mut *mut ffi::shw_error) -> ffi::shw_status {
    if !err.is_null() {
        // SAFETY: err is the library's out-parameter; texts are copied by the call.
        unsafe {
            ffi::shw_error_create(
                error.code.0,
                error.message.as_ptr().cast(),
                error.message.len() as u64,
                std::ptr::null(),
                0,
                std::ptr::null_mut(),
                err,
            );
        }
    }
    error.code.0
}

/// A panic of a callback on this thread goes on in the call that caused it.
fn resume_host_panic(status: ffi::shw_status) {
    if status == ffi::SHW_HOST_EXCEPTION {
        if let Some(payload) = PANIC.with(|p| p.borrow_mut().take()) {
            std::panic::resume_unwind(payload);
        }
    }
}
