// SPDX-License-Identifier: Apache-2.0
//! The owned error object of a failed call.

use crate::ffi;
use core::ffi::{CStr, c_char};
use core::ptr::NonNull;

/// Status and, where the library made one, the error object; released on drop. Immutable, so it may move and be shared.
#[derive(Debug)]
pub struct RawError {
    status: ffi::shw_status,
    object: Option<NonNull<ffi::shw_error>>,
}

// SAFETY: error objects are immutable and all their getters may be called from any thread.
unsafe impl Send for RawError {}
// SAFETY: as above.
unsafe impl Sync for RawError {}

impl RawError {
    /// Success for `SHW_OK`; takes `object` otherwise.
    pub fn check(status: ffi::shw_status, object: *mut ffi::shw_error) -> Result<(), RawError> {
        if status == ffi::SHW_OK { Ok(()) } else { Err(RawError { status, object: NonNull::new(object) }) }
    }

    /// The status number.
    pub fn status(&self) -> ffi::shw_status {
        self.status
    }

    /// The message; empty when there is no error object.
    pub fn message(&self) -> String {
        match self.object {
            // SAFETY: the object lives as long as self.
            Some(object) => unsafe { message_of(object.as_ptr()) },
            None => String::new(),
        }
    }

    /// Key and value of each detail.
    pub fn details(&self) -> Vec<(String, String)> {
        let Some(object) = self.object else {
            return Vec::new();
        };
        // SAFETY: the object lives as long as self.
        unsafe { details_of(object.as_ptr()) }
    }

    /// True when the same call may succeed if it is repeated from its start.
    pub fn is_retryable(&self) -> bool {
        // SAFETY: the object lives as long as self.
        self.object.is_some_and(|o| unsafe { ffi::shw_error_is_retryable(o.as_ptr()) } != 0)
    }

    /// Messages of the causes, outermost first.
    pub fn causes(&self) -> Vec<String> {
        let mut found = Vec::new();
        let Some(object) = self.object else {
            return found;
        };
        // SAFETY: causes are borrowed from the object.
        unsafe {
            let mut cause = ffi::shw_error_cause(object.as_ptr());
            while !cause.is_null() {
                found.push(message_of(cause));
                cause = ffi::shw_error_cause(cause);
            }
        }
        found
    }
}

impl Drop for RawError {
    fn drop(&mut self) {
        if let Some(object) = self.object {
            // SAFETY: owned, released once.
            unsafe { ffi::shw_error_release(object.as_ptr()) }
        }
    }
}

unsafe fn message_of(error: *const ffi::shw_error) -> String {
    let mut size = 0;
    // SAFETY: the caller passes a live error; the text is borrowed from it.
    let text = unsafe { ffi::shw_error_message(error, &mut size) };
    unsafe { copy_text(text, size) }
}

unsafe fn details_of(error: *const ffi::shw_error) -> Vec<(String, String)> {
    let count = unsafe { ffi::shw_error_detail_count(error) };
    let mut found = Vec::new();
    for index in 0..count {
        let mut detail = ffi::shw_error_detail { key: core::ptr::null(), value: core::ptr::null(), value_size: 0 };
        if unsafe { ffi::shw_error_detail_at(error, index, &mut detail) } == ffi::SHW_OK {
            let key = unsafe { CStr::from_ptr(detail.key) }.to_string_lossy().into_owned();
            found.push((key, unsafe { copy_text(detail.value, detail.value_size) }));
        }
    }
    found
}

/// # Safety
/// `text` is NULL or points to `size` readable bytes.
pub unsafe fn copy_text(text: *const c_char, size: u64) -> String {
    if text.is_null() {
        return String::new();
    }
    let bytes = unsafe { core::slice::from_raw_parts(text.cast::<u8>(), size as usize) };
    String::from_utf8_lossy(bytes).into_owned()
}
