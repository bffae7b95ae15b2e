// SPDX-License-Identifier: Apache-2.0
//! Text and blob shapes of the C interface: borrowed text, NUL-terminated paths, blobs cut by offsets.

use crate::dtype::Element;
use crate::error::{Error, ErrorKind, Result};
use shardwright_sys::error::copy_text;
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path or short text as C wants it; NUL inside is INVALID_ARGUMENT.
pub(crate) fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::new(ErrorKind::InvalidArgument, format!("path {path:?} holds a NUL")))
}

/// The text of an option; NUL inside is INVALID_ARGUMENT.
pub(crate) fn c_text(option: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| {
        Error::new(ErrorKind::InvalidArgument, format!("option {option} holds a NUL")).with_detail("parameter", option)
    })
}

/// Text of a getter that also gives the size.
pub(crate) fn sized_text(get: impl FnOnce(*mut u64) -> *const c_char) -> String {
    let mut size = 0;
    let text = get(&mut size);
    // SAFETY: getters return NULL or `size` readable bytes that live as long as their handle, which the caller holds.
    unsafe { copy_text(text, size) }
}

/// Many texts in one blob, cut by `count + 1` offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
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

    pub fn part(&self, index: usize) -> &[u8] {
        &self.bytes[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// A part that was pushed as text, or checked when the blob was made.
    pub fn text(&self, index: usize) -> &str {
        std::str::from_utf8(self.part(index)).expect("UTF-8")
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
        // SAFETY: the buffer lives as long as self.
        let count = unsafe { shardwright_sys::ffi::shw_buffer_part_count(self.0) };
        (0..count).map(|i| self.part(i)).collect()
    }

    /// Part `index`; empty when there is no such part.
    pub fn part(&self, index: u64) -> Vec<u8> {
        use shardwright_sys::ffi;
        // SAFETY: the buffer lives as long as self.
        unsafe { copy_bytes(ffi::shw_buffer_part_data(self.0, index), ffi::shw_buffer_part_size(self.0, index)) }
    }

    /// The first part, and the others.
    pub fn first_and_rest(&self) -> (Vec<u8>, Vec<Vec<u8>>) {
        // SAFETY: the buffer lives as long as self.
        let count = unsafe { shardwright_sys::ffi::shw_buffer_part_count(self.0) };
        (self.part(0), (1..count).map(|i| self.part(i)).collect())
    }

    /// Part `index` as numbers.
    pub fn values<T: Element>(&self, index: u64) -> Vec<T> {
        use shardwright_sys::ffi;
        // SAFETY: the buffer lives as long as self; any bit pattern is a value, and the vector has room for them.
        unsafe {
            let data = ffi::shw_buffer_part_data(self.0, index);
            let count = ffi::shw_buffer_part_size(self.0, index) as usize / size_of::<T>();
            let mut values: Vec<T> = Vec::with_capacity(count);
            if count != 0 {
                std::ptr::copy_nonoverlapping(
                    data.cast::<u8>(),
                    values.as_mut_ptr().cast::<u8>(),
                    count * size_of::<T>(),
                );
                values.set_len(count);
            }
            values
        }
    }

    /// Part `index` as a digest.
    pub fn digest(&self, index: u64) -> Result<[u8; 16]> {
        let bytes = self.part(index);
        let size = bytes.len();
        bytes.try_into().map_err(|_| Error::new(ErrorKind::Internal, format!("a digest of {size} bytes")))
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
