// SPDX-License-Identifier: Apache-2.0
//! Places where checkpoints lie.

use crate::error::Result;
use crate::host_storage::{Capabilities, HostStorage, vtable_of};
use crate::text::{Parts, c_path, sized_text};
use shardwright_sys::{ffi, raw};
use std::path::Path;

/// A directory, memory, or what a host offers. Thread-safe.
pub struct Storage(*mut ffi::shw_storage);

// SAFETY: storages may be used from any thread.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// Files below a directory, which need not exist.
    pub fn posix(root: impl AsRef<Path>) -> Result<Storage> {
        let root = c_path(root.as_ref())?;
        // SAFETY: the text is valid for the call.
        Ok(Storage(unsafe { raw::storage_create_posix(root.as_ptr()) }?))
    }

    /// Memory of this process.
    pub fn memory() -> Result<Storage> {
        // SAFETY: no arguments.
        Ok(Storage(unsafe { raw::storage_create_memory() }?))
    }

    /// A storage of the host. Its methods run on threads of the library; a panic in one ends the call that caused it
    /// with HOST_EXCEPTION, and goes on as itself when it was on the same thread.
    pub fn host(storage: impl HostStorage) -> Result<Storage> {
        let vtable = vtable_of(storage);
        // SAFETY: on success the library owns `user` and calls release once; on failure it is taken back here.
        match unsafe { raw::storage_create(&vtable) } {
            Ok(handle) => Ok(Storage(handle)),
            Err(error) => {
                if let Some(release) = vtable.release {
                    unsafe { release(vtable.user) };
                }
                Err(error.into())
            }
        }
    }

    /// Name of the kind, e.g. "posix".
    pub fn name(&self) -> String {
        // SAFETY: the handle lives as long as self.
        sized_text(|size| unsafe { ffi::shw_storage_name(self.0, size) })
    }

    /// Keys that begin with a prefix, ascending.
    pub fn list(&self, prefix: &str) -> Result<Vec<String>> {
        // SAFETY: handle and text live for the call.
        Ok(Parts::new(unsafe { raw::storage_list(self.0, prefix.as_bytes(), ffi::SHW_STORAGE_NO_DELIMITER) }?).texts())
    }

    /// Keys that begin with a prefix, one level: what lies deeper is given once, up to and with its next `/`.
    pub fn list_level(&self, prefix: &str) -> Result<Vec<String>> {
        // SAFETY: handle and text live for the call.
        let keys = unsafe { raw::storage_list(self.0, prefix.as_bytes(), ffi::SHW_STORAGE_DELIMITER) }?;
        Ok(Parts::new(keys).texts())
    }

    /// What the storage can do.
    pub fn capabilities(&self) -> Capabilities {
        // SAFETY: the handle lives as long as self.
        Capabilities(unsafe { ffi::shw_storage_capabilities(self.0) })
    }

    /// Bytes `offset .. offset + size` of an object. OUT_OF_RANGE when it ends before.
    pub fn read(&self, key: &str, offset: u64, size: usize) -> Result<Vec<u8>> {
        let mut data = vec![0u8; size];
        // SAFETY: the buffer has `size` writable bytes.
        unsafe { raw::storage_read(self.0, key.as_bytes(), offset, data.as_mut_ptr().cast(), size as u64) }?;
        Ok(data)
    }

    /// Writes a whole object, durable where the storage is.
    pub fn put(&self, key: &str, data: &[u8]) -> Result<()> {
        // SAFETY: handle and slices live for the call.
        Ok(unsafe { raw::storage_put(self.0, key.as_bytes(), data, ffi::SHW_COMMIT_NONE, &[]) }?)
    }

    /// Size of an object in bytes. NOT_FOUND when there is none.
    pub fn size(&self, key: &str) -> Result<u64> {
        // SAFETY: all zero is valid; handle and text live for the call.
        let mut stat: ffi::shw_storage_stat = unsafe { std::mem::zeroed() };
        stat.struct_size = size_of::<ffi::shw_storage_stat>() as u32;
        let mut err = std::ptr::null_mut();
        let status =
            unsafe { ffi::shw_storage_stat_key(self.0, key.as_ptr().cast(), key.len() as u64, &mut stat, &mut err) };
        shardwright_sys::error::RawError::check(status, err)?;
        Ok(stat.size)
    }

    /// Removes an object; a missing one is fine.
    pub fn remove(&self, key: &str) -> Result<()> {
        // SAFETY: handle and text live for the call.
        Ok(unsafe { raw::storage_remove(self.0, key.as_bytes()) }?)
    }

    pub(crate) fn handle(&self) -> *mut ffi::shw_storage {
        self.0
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_tuple("Storage").field(&self.name()).finish()
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_storage_release(self.0) }
    }
}
