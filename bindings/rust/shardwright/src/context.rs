// SPDX-License-Identifier: Apache-2.0
//! Contexts: worker threads, staging memory and log of the library.

use shardwright_sys::error::copy_text;
use shardwright_sys::{ffi, raw};
use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result, quietly};
use crate::limits::span_ns;
use crate::text::{Parts, c_path};

/// Severity of a log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LogLevel {
    /// Every step.
    Trace = 0,
    /// For whoever looks for a fault.
    Debug = 1,
    /// What a user may want to know.
    Info = 2,
    /// What should not have happened but was dealt with.
    Warning = 3,
    /// What failed.
    Error = 4,
    /// Nothing.
    Off = 5,
}

impl LogLevel {
    fn of(number: i32) -> LogLevel {
        [LogLevel::Trace, LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error]
            .into_iter()
            .find(|l| *l as i32 == number)
            .unwrap_or(LogLevel::Error)
    }
}

type LogFunction = dyn Fn(LogLevel, &str, &str) + Send + Sync;

/// Builds a [`Context`]; every value left out is the default of the library.
#[derive(Default)]
pub struct ContextBuilder {
    threads: u32,
    memory_budget: u64,
    machine: String,
    log: Option<(LogLevel, Box<LogFunction>)>,
}

impl std::fmt::Debug for ContextBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("ContextBuilder")
            .field("threads", &self.threads)
            .field("memory_budget", &self.memory_budget)
            .field("machine", &self.machine)
            .field("log", &self.log.as_ref().map(|(level, _)| level))
            .finish()
    }
}

impl ContextBuilder {
    /// Worker threads; 0 = min(cores, 8).
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// Bytes of staging memory; 0 = 256 MiB.
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = bytes;
        self
    }

    /// Ranks share memory only with those of their machine that say the same text, so that a job can tell apart containers
    /// of one host; empty = with all of the machine.
    pub fn machine(mut self, machine: impl Into<String>) -> Self {
        self.machine = machine.into();
        self
    }

    /// Receives level, component and message of records at `level` and above, on any thread. It must not call this
    /// crate. A panic in it is dropped with the record.
    pub fn log(mut self, level: LogLevel, function: impl Fn(LogLevel, &str, &str) + Send + Sync + 'static) -> Self {
        self.log = Some((level, Box::new(function)));
        self
    }

    /// Starts the threads. RESOURCE_EXHAUSTED when the system refuses them, INVALID_ARGUMENT for a machine with a NUL.
    pub fn build(self) -> Result<Context> {
        load_library()?;
        let machine = CString::new(self.machine).map_err(|_| {
            Error::new(ErrorKind::InvalidArgument, "the machine has a NUL").with_detail("parameter", "machine")
        })?;
        let log = self.log.map(|(level, function)| (level, Box::new(function)));
        // SAFETY: a plain struct for which all zero is valid.
        let mut options: ffi::shw_context_options = unsafe { std::mem::zeroed() };
        options.struct_size = size_of::<ffi::shw_context_options>() as u32;
        options.threads = self.threads;
        options.memory_budget = self.memory_budget;
        options.log_level = LogLevel::Off as i32;
        options.machine = machine.as_ptr();
        if let Some((level, function)) = &log {
            options.log_level = *level as i32;
            options.log = Some(log_trampoline);
            options.log_user = (&raw const **function).cast_mut().cast();
        }
        // SAFETY: the options are valid for the call; the log function lives in the context's inner.
        let handle = unsafe { raw::context_create(&options) }?;
        Ok(Context(Arc::new(Inner { handle, _log: log.map(|(_, f)| f) })))
    }
}

/// Double box: the inner one is fat, C wants a thin pointer.
unsafe extern "C" fn log_trampoline(user: *mut c_void, level: i32, record: *const ffi::shw_log_record) {
    // SAFETY: user is the box that the context keeps; the record is borrowed for this call.
    let (function, record) = unsafe { (&*user.cast::<Box<LogFunction>>(), &*record) };
    let message = unsafe { copy_text(record.message, record.message_size) };
    let component = if record.component.is_null() {
        String::new()
    } else {
        unsafe { CStr::from_ptr(record.component) }.to_string_lossy().into_owned()
    };
    quietly(|| function(LogLevel::of(level), &component, &message));
}

struct Inner {
    handle: *mut ffi::shw_context,
    // Boxed twice on purpose, see log_trampoline. Dropped after the handle's last job.
    _log: Option<Box<Box<LogFunction>>>,
}

// SAFETY: contexts may be used and released from any thread.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: owned. Jobs hold a clone of the context, so none is left that could log.
        unsafe { ffi::shw_context_release(self.handle) }
    }
}

/// Worker threads, staging memory and log. Clones share; thread-safe.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl Context {
    /// A builder with default values.
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// The context that calls without one share; made at the first use.
    pub fn shared() -> Result<Context> {
        static SHARED: OnceLock<Context> = OnceLock::new();
        static MAKING: Mutex<()> = Mutex::new(());
        if let Some(context) = SHARED.get() {
            return Ok(context.clone());
        }
        let _guard = MAKING.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(context) = SHARED.get() {
            return Ok(context.clone());
        }
        let context = Context::builder().build()?;
        Ok(SHARED.get_or_init(|| context).clone())
    }

    /// Loads a plugin: a file when the path has a slash, else the name of one that is looked for in `SHW_PLUGIN_PATH` and beside the
    /// library. Twice does nothing. NOT_FOUND when there is none, UNIMPLEMENTED for one of another version.
    ///
    /// # Safety
    /// A plugin is native code, which keeps what the interface of plugins asks.
    pub unsafe fn load_plugin(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        // SAFETY: handle and text live for the call.
        Ok(unsafe { raw::context_load_plugin(self.handle(), path.as_ptr()) }?)
    }

    /// Asks a loaded plugin something that its documentation names; the answer is text. NOT_FOUND when no such plugin was loaded,
    /// UNIMPLEMENTED for one that answers none.
    pub fn ask_plugin(&self, plugin: &str, question: &str) -> Result<String> {
        let plugin = CString::new(plugin)
            .map_err(|_| Error::new(ErrorKind::InvalidArgument, format!("plugin name {plugin:?} holds a NUL")))?;
        // SAFETY: handle and texts live for the call; the buffer is taken over.
        let answer = unsafe { raw::context_ask_plugin(self.handle(), plugin.as_ptr(), question.as_bytes()) }?;
        Ok(String::from_utf8_lossy(&Parts::new(answer).bytes()).into_owned())
    }

    /// Waits for the context's jobs, cancels what is left half-way, and takes no new ones. DEADLINE_EXCEEDED when jobs still
    /// run then. `None` = no limit.
    pub fn shutdown(&self, timeout: Option<Duration>) -> Result<()> {
        // SAFETY: the handle lives as long as self.
        match unsafe { raw::context_shutdown(self.handle(), span_ns(timeout)) } {
            Err(late) if late.status() == ffi::SHW_PENDING => {
                Err(Error::new(ErrorKind::DeadlineExceeded, "jobs of the context still run at the end of the time"))
            }
            ended => Ok(ended?),
        }
    }

    pub(crate) fn handle(&self) -> *mut ffi::shw_context {
        self.0.handle
    }
}

#[cfg(feature = "load-dynamic")]
fn load_library() -> Result<()> {
    shardwright_sys::loader::load().map_err(|text| Error::new(ErrorKind::NotFound, text))
}

/// Whether this crate goes with a library of that interface: while its major is 0, only the same minor does.
#[cfg(any(test, not(feature = "load-dynamic")))]
fn fits(major: u32, minor: u32) -> bool {
    let minor_fits = if major == 0 { minor == ffi::SHW_ABI_MINOR } else { minor >= ffi::SHW_ABI_MINOR };
    major == ffi::SHW_ABI_MAJOR && minor_fits
}

#[cfg(not(feature = "load-dynamic"))]
fn load_library() -> Result<()> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: plain out-parameters.
    unsafe { ffi::shw_abi_version(&mut major, &mut minor) };
    if fits(major, minor) {
        return Ok(());
    }
    let text = format!(
        "libshardwright has interface {major}.{minor}, this crate was made for {}.{}",
        ffi::SHW_ABI_MAJOR,
        ffi::SHW_ABI_MINOR
    );
    Err(Error::new(ErrorKind::Unimplemented, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_library_of_the_same_minor_fits_while_the_major_is_zero() {
        let (major, minor) = (ffi::SHW_ABI_MAJOR, ffi::SHW_ABI_MINOR);
        assert!(fits(major, minor));
        assert!(!fits(major, minor + 1) && !fits(major, minor - 1) && !fits(major + 1, minor));
    }
}
