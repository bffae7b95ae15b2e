// SPDX-License-Identifier: Apache-2.0
//! The error of every failed call.

use shardwright_sys::error::RawError;
use shardwright_sys::ffi;
use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $value:ident;)*) => {
        /// Why a call failed, as a program tells failures apart. One name for each status of the library.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind { $($(#[$doc])* $name,)* }

        impl ErrorKind {
            /// All kinds.
            pub const ALL: &[ErrorKind] = &[$(ErrorKind::$name,)*];

            /// Name in capitals, e.g. `NOT_FOUND`, the same in every language. Asks no library, so that also the error of
            /// a missing one can be printed.
            pub fn name(self) -> &'static str {
                const PREFIX: usize = "SHW_".len();
                match self { $(ErrorKind::$name => &stringify!($value)[PREFIX..],)* }
            }

            /// Status number of the library.
            pub fn status(self) -> i32 {
                match self { $(ErrorKind::$name => ffi::$value,)* }
            }

            /// Of a status number; Unknown for those that this version does not know.
            pub(crate) fn of(status: i32) -> ErrorKind {
                match status {
                    $(ffi::$value => ErrorKind::$name,)*
                    _ => ErrorKind::Unknown,
                }
            }
        }
    };
}

kinds! {
    /// A call or job was cancelled by the host.
    Cancelled = SHW_CANCELLED;
    /// A plugin or peer reported a code that nobody knows, or the library one that this version does not know.
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
    /// A callback of the host panicked on another thread or rank.
    HostException = SHW_HOST_EXCEPTION;
    /// A callback of the host leaves the work to the library.
    Declined = SHW_DECLINED;
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a call failed.
#[derive(Clone)]
pub struct Error {
    status: i32,
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
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            status: kind.status(),
            message: message.into(),
            details: BTreeMap::new(),
            retryable: false,
            source: None,
        }
    }

    /// The same with a fact by key, e.g. `file` or `expected`.
    #[must_use]
    pub fn with_detail(mut self, key: &str, value: &str) -> Error {
        self.details.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Why, for programs.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::of(self.status)
    }

    /// The status number as the library gave it, also one that this version does not know.
    pub fn status(&self) -> i32 {
        self.status
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
        let details: BTreeMap<String, String> = raw.details().into_iter().collect();
        let status = raw.status();
        if status == ffi::SHW_HOST_EXCEPTION {
            resume_host_panic(&details);
        }
        let mut message = raw.message();
        if message.is_empty() {
            message = format!("the library returned {} ({status}) without a message", ErrorKind::of(status));
        }
        let source = raw
            .causes()
            .into_iter()
            .rev()
            .fold(None, |inner, message| Some(Box::new(Cause { message, source: inner })));
        Error { status, message, details, retryable: raw.is_retryable(), source }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind())
            .field("status", &self.status)
            .field("message", &self.message)
            .field("details", &self.details)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind(), self.message)
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

/// Detail key under which a panic that was put aside is found again.
const HOST_EXCEPTION_KEY: &str = "host_exception";

/// Panics of callbacks, put aside until the call that caused them returns, on whatever thread. The key is unique in this
/// process and names it, so that the detail of another rank never finds one here.
static PANICS: Mutex<Vec<(String, Box<dyn Any + Send>)>> = Mutex::new(Vec::new());
const PANICS_MAX: usize = 64;

fn put_aside(payload: Box<dyn Any + Send>) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let key = format!("rust-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut panics = PANICS.lock().unwrap_or_else(|e| e.into_inner());
    if panics.len() == PANICS_MAX {
        panics.remove(0);
    }
    panics.push((key.clone(), payload));
    key
}

/// Runs a callback of the host; a panic is put aside and HOST_EXCEPTION returned, an error becomes an error object.
pub(crate) fn guard(err: *mut *mut ffi::shw_error, body: impl FnOnce() -> Result<()>) -> ffi::shw_status {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(Ok(())) => ffi::SHW_OK,
        Ok(Err(error)) => give_error(&error, err),
        Err(payload) => {
            let mut error = Error::new(ErrorKind::HostException, "a callback of the host panicked");
            error.details.insert(HOST_EXCEPTION_KEY.to_owned(), put_aside(payload));
            give_error(&error, err)
        }
    }
}

/// Runs what has no status to give, such as the drop of a host's storage: a panic ends here, reported by the panic hook.
pub(crate) fn quietly(body: impl FnOnce()) {
    if let Err(payload) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        // Whoever panics in a drop may hold something that does, too.
        std::mem::forget(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(payload))));
    }
}

fn give_error(error: &Error, err: *mut *mut ffi::shw_error) -> ffi::shw_status {
    let texts: Vec<(CString, CString)> = error
        .details
        .iter()
        .filter_map(|(k, v)| Some((CString::new(&k[..]).ok()?, CString::new(&v[..]).ok()?)))
        .collect();
    let details: Vec<ffi::shw_error_detail> = texts
        .iter()
        .map(|(k, v)| ffi::shw_error_detail {
            key: k.as_ptr(),
            value: v.as_ptr(),
            value_size: v.as_bytes().len() as u64,
        })
        .collect();
    if !err.is_null() {
        // SAFETY: err is the library's out-parameter; texts are copied by the call.
        unsafe {
            ffi::shw_error_create(
                error.status,
                error.message.as_ptr().cast(),
                error.message.len() as u64,
                details.as_ptr(),
                details.len() as u64,
                std::ptr::null_mut(),
                err,
            );
        }
    }
    error.status
}

/// A panic of a callback goes on in the call that caused it.
fn resume_host_panic(details: &BTreeMap<String, String>) {
    let Some(key) = details.get(HOST_EXCEPTION_KEY) else { return };
    let mut panics = PANICS.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(at) = panics.iter().position(|(k, _)| k == key) {
        let (_, payload) = panics.remove(at);
        drop(panics);
        std::panic::resume_unwind(payload);
    }
}
