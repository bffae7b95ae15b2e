// SPDX-License-Identifier: Apache-2.0
//! Text and blob shapes of the C interface: borrowed text, NUL-terminated paths, blobs cut by offsets.

use crate::error::{Error, Result, StatusCode};
use shardwright_sys::error::copy_text;
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path or short text as C wants it; NUL inside is INVALID_ARGUMENT.
pub(crate) fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::new(StatusCode::InvalidArgument, format!("path {path:?} holds a NUL")))
}

/// Text of a getter that also gives the size.
pub(crate) fn sized_text(get: impl FnOnce(*mut u64) -> *const c_char) -> String {
    let mut size = 0;
    let text = get(&mut size);
    // SAFETY: getters return NULL or `size` readable bytes that live as long as their handle, which the caller holds.
    unsafe { copy_text(text, size) }
}

/// Many texts in one blob, cut by `count + 1` offsets.
pub(crate) struct Blob {
    pub bytes: Vec<u8>,
    pub offsets: Vec<u64>,
}

impl Blob {
    pub fn of<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> Blob {
        let mut blob = Blob { bytes: Vec::new(), offsets: vec![0] };
        for part in parts {
            blob.push(part);
        }
        blob
    }

    pub fn push(&mut self, part: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(part.as_ref());
        self.offsets.push(self.bytes.len() as u64);
    }

    pub fn count(&self) -> u64 {
        self.offsets.len() as u64 - 1
    }
}

/// A library buffer with parts; released on drop.
pub(crate) struct Parts(*mut shardwright_sys::ffi::shw_buffer);

impl Parts {
    /// Takes ownership.
    pub fn new(buffer: *mut shardwright_sys::ffi::shw_buffer) -> Parts {
        Parts(buffer)
    }

    pub fn all(&self) -> Vec<Vec<u8>> {
        use shardwright_sys::ffi;
        // SAFETY: the buffer lives as long as self.
        unsafe {
            (0..ffi::shw_buffer_part_count(self.0))
                .map(|i| copy_bytes(ffi::shw_buffer_part_data(self.0, i), ffi::shw_buffer_part_size(self.0, i)))
                .collect()
        }
    }

    pub fn texts(&self) -> Vec<String> {
        self.all().into_iter().map(|b| String::from_utf8_lossy(&b).into_owned()).collect()
    }

    /// All bytes, parts back to back.
    pub fn bytes(&self) -> Vec<u8> {
        use shardwright_sys::ffi;
        // SAFETY: the buffer lives as long as self.
        unsafe { copy_bytes(ffi::shw_buffer_data(self.0), ffi::shw_buffer_size(self.0)) }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { shardwright_sys::ffi::shw_buffer_release(self.0) }
    }
}

/// # Safety
/// `data` is NULL or points to `size` readable bytes.
pub(crate) unsafe fn copy_bytes(data: *const std::ffi::c_void, size: u64) -> Vec<u8> {
    if data.is_null() || size == 0 {
        return Vec::new();
    }
    unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size as usize) }.to_vec()
}
