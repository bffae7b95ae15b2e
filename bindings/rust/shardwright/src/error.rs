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

/// Status number of the C library. Numbers that this version does not know are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatusCode(pub i32);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:ident;)*) => {
        #[allow(non_upper_case_globals)]
        impl StatusCode {
            $($(#[$doc])* pub const $name: StatusCode = StatusCode(ffi::$value);)*

            /// Name in capitals, e.g. `NOT_FOUND`; `UNRECOGNISED` for numbers that this version does not know. Asks no
            /// library, so that also the error of a missing one can be printed.
            pub fn name(self) -> &'static str {
                const PREFIX: usize = "SHW_".len();
                match self.0 {
                    $(ffi::$value => &stringify!($value)[PREFIX..],)*
                    _ => "UNRECOGNISED",
                }
            }
        }
    };
}

codes! {
    /// Success; no error has it.
    Ok = SHW_OK;
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
    /// A call that is not done yet; callbacks of the host give it.
    Pending = SHW_PENDING;
    /// Memory of the caller is too small.
    BufferTooSmall = SHW_BUFFER_TOO_SMALL;
    /// A callback of the host failed.
    HostException = SHW_HOST_EXCEPTION;
    /// A callback of the host leaves the work to the library.
    Declined = SHW_DECLINED;
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

    /// The same with a fact by key.
    pub(crate) fn with_detail(mut self, key: &str, value: &str) -> Error {
        self.details.insert(key.to_owned(), value.to_owned());
        self
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
        let details: BTreeMap<String, String> = raw.details().into_iter().collect();
        let code = StatusCode(raw.status());
        if code == StatusCode::HostException {
            resume_host_panic(&details);
        }
        let mut message = raw.message();
        if message.is_empty() {
            message = format!("the library returned {code} without a message");
        }
        let source = raw
            .causes()
            .into_iter()
            .rev()
            .fold(None, |inner, message| Some(Box::new(Cause { message, source: inner })));
        Error { code, message, details, retryable: raw.is_retryable(), source }
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
            let mut error = Error::new(StatusCode::HostException, "a callback of the host panicked");
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
                error.code.0,
                error.message.as_ptr().cast(),
                error.message.len() as u64,
                details.as_ptr(),
                details.len() as u64,
                std::ptr::null_mut(),
                err,
            );
        }
    }
    error.code.0
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
